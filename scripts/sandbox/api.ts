/** Calls to the API with a partner's key. */
import { CommandError, EXIT } from '../../process/command-line.ts';
import { nameRunningStack } from '../../process/running-stack.ts';
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
  more: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  const response = await send(`${url}${path}`, {
    method,
    headers: { ...more, 'x-api-key': apiKey, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
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
