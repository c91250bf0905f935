/**
 * `listen`: a subscriber on this machine. Verifies and prints each delivery, and says what is wrong when one does not
 * verify. With an API key it subscribes by itself, and unsubscribes when it ends.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { parseArgs, styleText } from 'node:util';
import { z } from 'zod';
import { nameRunningStack } from '../../process/running-stack.ts';
import type { SandboxCommand } from './command.ts';
import { ADVICE, diagnose } from './webhook-diagnosis.ts';

const DEFAULT_PORT = '4400';
const BODY_BYTES_MAX = 1_048_576;
const UNVERIFIED = 400;

export const listen: SandboxCommand = {
  usage:
    'listen [--port PORT] [--secret whsec_…] [--url API]   subscribes by itself with API_KEY (scope full) in the environment',
  run: async (args) => {
    const { values } = parseArgs({
      args: [...args],
      options: { port: { type: 'string', default: DEFAULT_PORT }, secret: { type: 'string' }, url: { type: 'string' } },
    });
    const given = values.secret ?? process.env['WEBHOOK_SECRET'];
    const apiKey = process.env['API_KEY'];
    const apiUrl = values.url ?? nameRunningStack()?.apiUrl;
    if (given === undefined && (apiKey === undefined || apiUrl === undefined)) {
      console.error(
        "Give the subscription's secret with --secret, or set API_KEY while a stack is running, to subscribe from here.",
      );
      return 1;
    }
    let secret = given;
    const server = createListener({ secret: () => secret, print: console.log, now: () => new Date() });
    server.listen(Number(values.port), '127.0.0.1');
    await once(server, 'listening');
    const hookUrl = `http://127.0.0.1:${values.port}/`;
    const subscription =
      secret === undefined && apiUrl !== undefined && apiKey !== undefined
        ? await subscribe(apiUrl, apiKey, hookUrl)
        : undefined;
    secret ??= subscription?.secret;
    console.log(
      `Listening at ${hookUrl}${subscription ? `, subscribed to every event as ${subscription.id}` : ''}. Ctrl-C ends it.`,
    );
    await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
    await subscription?.end();
    server.close();
    server.closeAllConnections();
    return 0;
  },
};

export type ListenerDeps = {
  readonly secret: () => string | undefined;
  readonly print: (line: string) => void;
  readonly now: () => Date;
};

/** Answers 204 to what verifies and 400 to what does not, so that the service's history shows the same. */
export function createListener({ secret, print, now }: ListenerDeps): Server {
  let secretIsGood = false;
  return createServer((request, response) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > BODY_BYTES_MAX) request.destroy();
      else chunks.push(chunk);
    });
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const diagnosis = diagnose({ headers: request.headers, body }, secret() ?? '', { now: now(), secretIsGood });
      const verified = diagnosis === 'verified';
      secretIsGood ||= verified || diagnosis === 'clock';
      print(
        styleText(
          verified ? 'green' : 'red',
          `${verified ? '✓' : '✗'} ${String(request.headers['webhook-id'] ?? 'no id')}  ${diagnosis}: ${ADVICE[diagnosis]}`,
        ),
      );
      print(readable(body));
      response.writeHead(verified ? 204 : UNVERIFIED).end();
    });
  });
}

function readable(body: Buffer): string {
  try {
    return JSON.stringify(JSON.parse(body.toString()), null, 2);
  } catch {
    return body.toString();
  }
}

const Created = z.object({ webhook_id: z.string(), secret: z.string() });

async function subscribe(apiUrl: string, apiKey: string, url: string) {
  const headers = { 'x-api-key': apiKey };
  const response = await fetch(`${apiUrl}/v1/webhooks`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ url, event_types: ['*'], description: 'npm run sandbox -- listen' }),
  });
  if (!response.ok) throw new Error(`The subscription was refused: ${await response.text()}`);
  const { webhook_id: id, secret } = Created.parse(await response.json());
  return {
    id,
    secret,
    end: async () => {
      await fetch(`${apiUrl}/v1/webhooks/${id}`, { method: 'DELETE', headers });
    },
  };
}
