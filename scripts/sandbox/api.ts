/** Calls to the API with a partner's key. */
import { CommandError, EXIT } from '../../ops/command-line/program.ts';
import { nameRunningStack } from '../../process/local/running-stack.ts';
import { NO_STACK } from './command.ts';

export type Api = { readonly url: string; readonly apiKey: string };

/**
 * The API that a command uses: the given one or that of the running stack, with the key of API_KEY.
 *
 * @param scope what the key must be allowed to do, for the message
 * @throws CommandError when there is no stack, or no key
 */
export function apiOf(env: NodeJS.ProcessEnv, given: string | undefined, scope: string): Api {
  const url = given ?? nameRunningStack()?.apiUrl;
  if (url === undefined) throw new CommandError(EXIT.unavailable, `${NO_STACK}, or give --url.`);
  const apiKey = env['API_KEY'];
  if (!apiKey) throw new CommandError(EXIT.configuration, `Set API_KEY to a key with scope ${scope}.`);
  return { url, apiKey };
}

/** @throws CommandError when the API does not answer, or answers with an error */
export async function callApi(
  { url, apiKey }: Api,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body?: unknown,
): Promise<unknown> {
  const response = await send(`${url}${path}`, {
    method,
    headers: { 'x-api-key': apiKey, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return answerOf(response);
}

/** An object, and the tag of this answer; null when something between here and the API removed it. */
type Seen = { readonly object: unknown; readonly etag: string | null };

/** The longest hold that the API grants. It answers earlier when the object changes. */
const HOLD_SECONDS = 30;
/** Without a tag, a change between two reads is not noticed before the hold ends. */
const UNTAGGED_HOLD_SECONDS = 1;
const NOT_MODIFIED = 304;

/**
 * Reads an object: at once, or held until it differs from the one that was seen.
 *
 * @returns what was seen, when the hold is over and nothing has changed
 * @throws CommandError when the API does not answer, or answers with an error
 */
export async function readChange({ url, apiKey }: Api, path: string, seen: Seen | undefined): Promise<Seen> {
  const hold = seen && { prefer: `wait=${seen.etag === null ? UNTAGGED_HOLD_SECONDS : HOLD_SECONDS}` };
  const tag = seen?.etag ? { 'if-none-match': seen.etag } : {};
  const response = await send(`${url}${path}`, { headers: { 'x-api-key': apiKey, ...hold, ...tag } });
  if (seen !== undefined && response.status === NOT_MODIFIED) return seen;
  return { object: await answerOf(response), etag: response.headers.get('etag') };
}

async function answerOf(response: Response): Promise<unknown> {
  const text = await response.text();
  if (!response.ok) throw new CommandError(EXIT.refused, `The API refused with ${response.status}: ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}

async function send(url: string, request: RequestInit): Promise<Response> {
  try {
    return await fetch(url, request);
  } catch {
    throw new CommandError(EXIT.unavailable, `The API at ${url} does not answer.`);
  }
}
