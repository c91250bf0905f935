/** Requests over a real connection with exactly the given header lines, which no HTTP client would send twice. */
import { once } from 'node:events';
import { type Agent, request as httpRequest } from 'node:http';

export type RawAnswer = {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly body: Record<string, unknown>;
};

/**
 * @param lines header names and values in turn, in addition to Host and what the body needs
 * @param agent false for a connection of its own
 */
export async function sendRaw(
  origin: URL,
  { method, path, lines, body }: { method: string; path: string; lines: readonly string[]; body: string | undefined },
  agent: Agent | false,
): Promise<RawAnswer> {
  const headers = [
    'Host',
    origin.host,
    ...lines,
    ...(body === undefined ? [] : ['Content-Type', 'application/json', 'Content-Length', String(body.length)]),
  ];
  const request = httpRequest({ host: origin.hostname, port: origin.port, method, path, headers, agent });
  request.end(body);
  const [response] = await once(request, 'response');
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part);
  const text = Buffer.concat(parts).toString();
  return { status: response.statusCode, headers: response.headers, body: text === '' ? {} : JSON.parse(text) };
}
