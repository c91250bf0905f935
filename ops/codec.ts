/**
 * `npm run codec -- --origin <url of Temporal UI>`: opens sealed payloads for Temporal UI and the `temporal` program, on
 * this machine. Whoever may ask it reads everything: it listens on the loopback unless there is a token to ask for, and
 * answers no page but those of the given origins.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { ApplicationFailure, type Payload, type PayloadCodec } from '@temporalio/common';
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { z } from 'zod';
import { loadTemporalConfig } from '../config.ts';
import { createPayloadCodec } from '../process/payload-codec.ts';

const USAGE = 'Usage: npm run codec -- --origin <http://127.0.0.1:8080> [--origin …] [--host 127.0.0.1] [--port 8082]';
const PORT = '8082';
const LOOPBACK = '127.0.0.1';
/** Temporal hands out four megabytes at a time, a third more as base64. */
const BODY_BYTES_MAX = 8 * 1024 * 1024;
const TOKEN_LENGTH_MIN = 32;
const PREFLIGHT_SECONDS = 600;

export type CodecOptions = {
  readonly codec: PayloadCodec;
  readonly namespace: string;
  /** Exactly as a browser writes them: `<scheme>://<host>[:<port>]`. */
  readonly origins: readonly string[];
  /** What `Authorization: Bearer …` must carry; undefined asks for none. */
  readonly token: string | undefined;
};

const Base64 = z.base64().transform((text) => Buffer.from(text, 'base64'));
/** The `temporal` program leaves out what is empty. */
const Body = z.object({
  payloads: z
    .array(z.object({ metadata: z.record(z.string(), Base64).default({}), data: Base64.optional() }))
    .default([]),
});

/** `POST /encode` and `POST /decode` as Temporal's tools ask for them; payloads that are not sealed pass as they are. */
export function buildCodec({ codec, namespace, origins, token }: CodecOptions): FastifyInstance {
  const app = fastify({ bodyLimit: BODY_BYTES_MAX, exposeHeadRoutes: false });
  app.removeContentTypeParser('text/plain');
  app.addHook('onRequest', async (request, reply) => {
    const { origin } = request.headers;
    reply.header('vary', 'Origin').header('cache-control', 'no-store');
    // A page that was not named gets no answer at all, and neither does one that resolves its own name to this machine.
    if (origin !== undefined && !origins.includes(origin))
      return reply.code(403).send({ error: 'This origin may not ask.' });
    if (origin !== undefined) reply.header('access-control-allow-origin', origin);
    if (request.method === 'OPTIONS') return;
    if (token !== undefined && !carries(request, token))
      return reply.code(401).send({ error: 'The token is missing or wrong.' });
    // The `temporal` program leaves it empty where it was not told of one.
    if ((request.headers['x-namespace'] || namespace) !== namespace)
      return reply.code(403).send({ error: 'These keys are of another namespace.' });
  });
  app.setErrorHandler(async (error, _request, reply) => {
    if (error instanceof ApplicationFailure) return reply.code(400).send({ error: error.message });
    if (error instanceof z.ZodError)
      return reply.code(400).send({ error: 'The body must be {"payloads": [{"metadata": {…}, "data": "<base64>"}]}.' });
    const status =
      error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number' ? error.statusCode : 500;
    return reply.code(status).send({ error: status === 500 ? 'It could not be done.' : 'The request cannot be read.' });
  });
  for (const direction of ['encode', 'decode'] as const) {
    app.options(`/${direction}`, async (_request, reply) =>
      reply
        .code(204)
        .header('access-control-allow-methods', 'POST')
        .header('access-control-allow-headers', 'authorization, content-type, x-namespace')
        .header('access-control-max-age', PREFLIGHT_SECONDS)
        .send(),
    );
    app.post(`/${direction}`, async (request) => {
      const { payloads } = Body.parse(request.body);
      return {
        payloads: (
          await codec[direction](payloads.map(({ metadata, data }) => ({ metadata, data: data ?? null })))
        ).map(jsonOf),
      };
    });
  }
  return app;
}

const jsonOf = ({ metadata, data }: Payload): { metadata: Record<string, string>; data: string } => ({
  metadata: Object.fromEntries(
    Object.entries(metadata ?? {}).map(([name, value]) => [name, Buffer.from(value).toString('base64')]),
  ),
  data: Buffer.from(data ?? []).toString('base64'),
});

/** Digests are compared, which have one length whatever was sent. */
function carries({ headers }: FastifyRequest, token: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(headers.authorization ?? ''), digest(`Bearer ${token}`));
}

type Settings = CodecOptions & { readonly host: string; readonly port: number };

/** @returns what is wrong, a sentence each, when it cannot start so */
export function readSettings(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Settings | { readonly faults: readonly string[] } {
  const { values } = parseArgs({
    args: [...args],
    options: {
      origin: { type: 'string', multiple: true },
      host: { type: 'string', default: LOOPBACK },
      port: { type: 'string', default: PORT },
    },
  });
  const { origin: origins = [], host } = values;
  const port = Number(values.port);
  const token = env['CODEC_TOKEN'] || undefined;
  const { payloadKeys, temporal } = loadTemporalConfig(env);
  const faults = [
    ...(payloadKeys === undefined ? ['TEMPORAL_PAYLOAD_KEYS is not set: there is nothing to open.'] : []),
    ...(Number.isInteger(port) && port >= 0 && port <= 65_535 ? [] : ['--port must be a port number.']),
    ...origins
      .filter((origin) => !isOrigin(origin))
      .map(() => '--origin must be <scheme>://<host>[:<port>], without a path.'),
    ...(token !== undefined && token.length < TOKEN_LENGTH_MIN
      ? [`CODEC_TOKEN must have at least ${TOKEN_LENGTH_MIN} characters.`]
      : []),
    ...(host !== LOOPBACK && token === undefined ? ['Beyond the loopback a CODEC_TOKEN is needed.'] : []),
  ];
  if (payloadKeys === undefined || faults.length > 0) return { faults };
  return {
    codec: createPayloadCodec(payloadKeys),
    namespace: temporal.namespace ?? 'default',
    origins,
    token,
    host,
    port,
  };
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text;
}

/** @returns the exit code of what did not start; undefined while it listens */
async function main(args: readonly string[]): Promise<number | undefined> {
  try {
    const settings = readSettings(args, process.env);
    if ('faults' in settings) {
      for (const fault of settings.faults) console.error(fault);
      console.error(USAGE);
      return 1;
    }
    const { host, port, namespace } = settings;
    console.log(`Opens payloads of namespace ${namespace} at ${await buildCodec(settings).listen({ host, port })}`);
    return undefined;
  } catch (error) {
    console.error(error instanceof Error ? error.message : 'It did not start.');
    return 1;
  }
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  process.exitCode = await main(process.argv.slice(2));
