/** Calls to the API with a partner's key. */
import { CommandError, EXIT } from '../../process/command-line.ts';

export type Api = { readonly url: string; readonly apiKey: string };

/** @throws CommandError when the API does not answer, or answers with an error */
export async function callApi(
  { url, apiKey }: Api,
  method: 'POST' | 'DELETE',
  path: string,
  body?: unknown,
): Promise<unknown> {
  const response = await send(`${url}${path}`, {
    method,
    headers: { 'x-api-key': apiKey, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
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
