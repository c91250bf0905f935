/**
 * `listen`: a webhook subscriber on this machine. It verifies and prints each delivery, and explains why one does not
 * verify. With an API key it subscribes when it starts and unsubscribes when it ends.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { styleText } from 'node:util';
import { optional, text, wholeNumber, withDefault } from '../../ops/command-line/parameter.ts';
import { CommandError, command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { nameRunningStack } from '../../process/local/running-stack.ts';
import { type Api, callApi } from './api.ts';
import { API_URL, type SandboxCommand, type SandboxDeps } from './command.ts';
import { ADVICE, diagnose } from './webhook-diagnosis.ts';

const DEFAULT_PORT = '4400';
const BODY_BYTES_MAX = 1_048_576;
const UNVERIFIED = 400;
/** SIGHUP: the terminal was closed. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export const listen: SandboxCommand = command({
  name: 'listen',
  description: 'Receives webhooks on this machine and verifies them. Subscribes by itself if API_KEY has scope full.',
  takes: {
    port: withDefault('--port <port>', 'the port to listen on', wholeNumber(1, 65_535), DEFAULT_PORT),
    secret: optional('--secret <whsec_…>', 'the secret of a subscription; by default WEBHOOK_SECRET', text),
    url: API_URL,
  },
  run: async ({ env, ...printer }: SandboxDeps, { port, secret: givenSecret, url: givenUrl }) => {
    const given = givenSecret ?? (env['WEBHOOK_SECRET'] || undefined);
    const [url, apiKey] = [givenUrl ?? nameRunningStack()?.apiUrl, env['API_KEY']];
    const api = url && apiKey ? { url, apiKey } : undefined;
    if (given === undefined && api === undefined)
      throw new CommandError(
        EXIT.configuration,
        "Give the subscription's secret with --secret. To subscribe from here, set API_KEY while a stack is running.",
      );
    const hookUrl = `http://127.0.0.1:${port}/`;
    let secret = given;
    const server = createListener({ ...printer, secret: () => secret, now: () => new Date() });
    // Awaited before it subscribes: a signal in between would leave the subscription.
    const stopped = Promise.race([...STOP_SIGNALS.map((signal) => once(process, signal)), untilOutputCloses()]);
    try {
      await open(server, port);
      const subscription = secret === undefined && api ? await subscribe(api, hookUrl) : undefined;
      secret ??= subscription?.secret;
      const subscribed = subscription ? `, subscribed to every event as ${subscription.id}` : '';
      printer.warn(`Listening at ${hookUrl}${subscribed}. Ctrl-C ends it.`);
      await stopped;
      await subscription?.end();
      return EXIT.done;
    } finally {
      server.close();
      server.closeAllConnections();
    }
  },
});

export async function open(server: Server, port: number): Promise<void> {
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (error) {
    throw new CommandError(
      EXIT.refused,
      `Port ${port} cannot be used: ${error instanceof Error ? error.message : String(error)}. Give another one with --port <port>.`,
    );
  }
}

/** When the reader of a pipe has gone, for example `| head`, nobody sees the deliveries any more. */
const untilOutputCloses = (): Promise<void> => new Promise((resolve) => process.stdout.once('close', resolve));

export type ListenerDeps = Omit<Printer, 'warn'> & {
  readonly secret: () => string | undefined;
  readonly now: () => Date;
};

/** Answers 204 if the delivery verifies and 400 if not, so that the service's list of attempts shows the same. */
export function createListener({ secret, print, printData, now }: ListenerDeps): Server {
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
      const id = request.headers['webhook-id'];
      const line = `${verified ? '✓' : '✗'} ${String(id ?? 'no id')}  ${diagnosis}: ${ADVICE[diagnosis]}`;
      print(styleText(verified ? 'green' : 'red', line));
      print(readable(body));
      printData({ webhook_id: id ?? null, diagnosis, advice: ADVICE[diagnosis], body: body.toString() });
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

async function subscribe(api: Api, url: string) {
  const ours = { url, description: 'npm run sandbox -- listen' };
  const { webhook_id: id, secret } = await callApi(api, async ({ webhooks }) => {
    // Only one process can listen at this port. So a listener that was killed has left these.
    for await (const left of webhooks.list())
      if (left.url === ours.url && left.description === ours.description) await webhooks.delete(left.webhook_id);
    return await webhooks.create({ ...ours, event_types: ['*'] });
  });
  return { id, secret, end: () => callApi(api, ({ webhooks }) => webhooks.delete(id)) };
}
