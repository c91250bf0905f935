/**
 * Parses a JSON body strictly (contract §2): UTF-8, no duplicate names in one object, a bounded depth, no `__proto__`.
 * `JSON.parse` alone accepts each of these faults.
 */
import { InvalidRequestError } from './request-fault.ts';

export const JSON_DEPTH_MAX = 32;

const decoder = new TextDecoder('utf-8', { fatal: true });

const invalid = (position: number, msg: string): InvalidRequestError =>
  new InvalidRequestError([{ loc: ['body', position], msg, type: 'json_invalid' }]);

/** @throws InvalidRequestError (`json_invalid`) with the position of the fault if it is known */
export function parseJsonBody(bytes: Buffer): unknown {
  let source: string;
  try {
    source = decoder.decode(bytes);
  } catch {
    throw invalid(0, 'JSON decode error: the body is not UTF-8');
  }
  let value: unknown;
  try {
    value = JSON.parse(source);
  } catch (error) {
    throw invalid(faultPosition(error, source), 'JSON decode error');
  }
  checkStructure(source);
  return value;
}

/** Read from the parser's message. The message itself is never shown: it quotes the body. */
function faultPosition(error: unknown, source: string): number {
  const message = error instanceof Error ? error.message : '';
  if (message.includes('end of JSON')) return source.length;
  return Number(/position (\d+)/.exec(message)?.[1] ?? 0);
}

/** Walks the tokens of valid JSON and keeps the names of each open object. */
function checkStructure(source: string): void {
  const open: (Set<string> | undefined)[] = [];
  for (const token of source.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]]/gs)) {
    const [text] = token;
    if (text === '{' || text === '[') {
      open.push(text === '{' ? new Set() : undefined);
      if (open.length > JSON_DEPTH_MAX)
        throw invalid(token.index, `JSON decode error: nested deeper than ${JSON_DEPTH_MAX}`);
    } else if (text === '}' || text === ']') {
      open.pop();
    } else if (isName(source, token.index + text.length)) {
      checkName(JSON.parse(text), open.at(-1), token.index);
    }
  }
}

/** Whether a colon follows the string that ends here: then the string is a member's name. */
function isName(source: string, end: number): boolean {
  const colon = /\s*:/y;
  colon.lastIndex = end;
  return colon.test(source);
}

function checkName(name: unknown, names: Set<string> | undefined, position: number): void {
  if (typeof name !== 'string' || names === undefined) return;
  if (name === '__proto__') throw invalid(position, 'JSON decode error: this name is not allowed');
  if (names.has(name)) throw invalid(position, 'JSON decode error: an object has the same name twice');
  names.add(name);
}
