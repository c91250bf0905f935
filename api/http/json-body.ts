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

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const OPENING = new Set([0x7b, 0x5b]);
const CLOSING = new Set([0x7d, 0x5d]);
const OBJECT = 0x7b;
/** Space, tab, line feed, carriage return: no other white space is valid between tokens. */
const BLANK = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** Walks the tokens of valid JSON once, and keeps the names of each open object. */
function checkStructure(source: string): void {
  const open: (Set<string> | undefined)[] = [];
  for (let at = 0; at < source.length; at += 1) {
    const unit = source.charCodeAt(at);
    if (unit === QUOTE) {
      const start = at;
      at = endOfString(source, start);
      if (isName(source, at + 1)) checkName(source.slice(start, at + 1), open.at(-1), start);
    } else if (OPENING.has(unit)) {
      open.push(unit === OBJECT ? new Set() : undefined);
      if (open.length > JSON_DEPTH_MAX) throw invalid(at, `JSON decode error: nested deeper than ${JSON_DEPTH_MAX}`);
    } else if (CLOSING.has(unit)) {
      open.pop();
    }
  }
}

/** The position of the quote that ends the string that begins at `start`. */
function endOfString(source: string, start: number): number {
  let at = start + 1;
  while (source.charCodeAt(at) !== QUOTE) at += source.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at;
}

/** Whether a colon follows the string that ends before `end`: then the string is a member's name. */
function isName(source: string, end: number): boolean {
  let at = end;
  while (BLANK.has(source.charCodeAt(at))) at += 1;
  return source.charCodeAt(at) === COLON;
}

/** @param text the name with its quotes */
function checkName(text: string, names: Set<string> | undefined, position: number): void {
  const name: unknown = text.includes('\\') ? JSON.parse(text) : text.slice(1, -1);
  if (typeof name !== 'string' || names === undefined) return;
  if (name === '__proto__') throw invalid(position, 'JSON decode error: this name is not allowed');
  if (names.has(name)) throw invalid(position, 'JSON decode error: an object has the same name twice');
  names.add(name);
}
