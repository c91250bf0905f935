/**
 * `npm run codec -- --origin <url of Temporal UI>`: a server that opens sealed payloads for Temporal UI and for the
 * `temporal` program. Its callers can read every payload, so it listens on the loopback address unless a token protects
 * it, and it answers browsers only for pages of the given origins.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ApplicationFailure, type Payload, type PayloadCodec } from '@temporalio/common';
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { z } from 'zod';
import { loadTemporalConfig } from '../config/load.ts';
import { createPayloadCodec } from '../process/payload-codec.ts';
import { type Reader, repeatable, text, type ValuesOf, wholeNumber, withDefault } from './command-line/parameter.ts';
import { CommandError, command, EXIT, type Printer, runProgram, standardOutput } from './command-line/program.ts';
import { withCommandErrors } from './failure.ts';

const PORT = '8082';
const LOOPBACK = '127.0.0.1';
/** Temporal sends up to four megabytes at once; base64 adds a third. */
const BODY_BYTES_MAX = 8 * 1024 * 1024;
const TOKEN_LENGTH_MIN = 32;
const PREFLIGHT_SECONDS = 600;

export type CodecOptions = {
  readonly codec: PayloadCodec;
  readonly namespace: string;
  /** Exactly as a browser writes them: `<scheme>://<host>[:<port>]`. */
  readonly origins: readonly string[];
  /** The token that `Authorization: Bearer …` must contain; undefined when no token is needed. */
  readonly token: string | undefined;
};

const Base64 = z.base64().transform((text) => Buffer.from(text, 'base64'));
/** The `temporal` program leaves empty fields out. */
const Body = z.object({
  payloads: z
    .array(z.object({ metadata: z.record(z.string(), Base64).default({}), data: Base64.optional() }))
    .default([]),
});

/** `POST /encode` and `POST /decode` for Temporal's tools. Payloads that are not sealed are returned unchanged. */
export function buildCodec({ codec, namespace, origins, token }: CodecOptions): FastifyInstance {
  const app = fastify({ bodyLimit: BODY_BYTES_MAX, exposeHeadRoutes: false });
  app.removeContentTypeParser('text/plain');
  app.addHook('onRequest', async (request, reply) => {
    const { origin } = request.headers;
    reply.header('vary', 'Origin').header('cache-control', 'no-store');
    // Pages of other origins are refused, also those whose host name resolves to this machine.
    if (origin !== undefined && !origins.includes(origin))
      return reply.code(403).send({ error: 'This origin is not allowed.' });
    if (origin !== undefined) reply.header('access-control-allow-origin', origin);
    if (request.method === 'OPTIONS') return;
    if (token !== undefined && !hasToken(request, token))
      return reply.code(401).send({ error: 'The token is missing or invalid.' });
    // The `temporal` program sends an empty header when it has no namespace.
    if ((request.headers['x-namespace'] || namespace) !== namespace)
      return reply.code(403).send({ error: 'This server has the keys of another namespace.' });
  });
  app.setErrorHandler(async (error, _request, reply) => {
    if (error instanceof ApplicationFailure) return reply.code(400).send({ error: error.message });
    if (error instanceof z.ZodError)
      return reply.code(400).send({ error: 'The body must be {"payloads": [{"metadata": {…}, "data": "<base64>"}]}.' });
    const status =
      error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number' ? error.statusCode : 500;
    return reply.code(status).send({ error: status === 500 ? 'The request failed.' : 'The request cannot be read.' });
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

/** Compares digests, because they have the same length for every token. */
function hasToken({ headers }: FastifyRequest, token: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(headers.authorization ?? ''), digest(`Bearer ${token}`));
}

const origin: Reader<string> = {
  read: (given) =>
    URL.canParse(given) && new URL(given).origin === given
      ? { value: given }
      : { fault: 'must be <scheme>://<host>[:<port>], without a path.' },
};

const TAKES = {
  origins: repeatable(
    '--origin <url>',
    'the address of Temporal UI, for example http://127.0.0.1:8080; repeatable',
    origin,
  ),
  host: withDefault('--host <address>', 'the address to listen on; any other needs CODEC_TOKEN', text, LOOPBACK),
  port: withDefault('--port <port>', 'the port to listen on', wholeNumber(0, 65_535), PORT),
};

/**
 * The settings that come from the environment.
 *
 * @throws CommandError with every fault
 */
function readSettings(host: string, env: NodeJS.ProcessEnv): Omit<CodecOptions, 'origins'> {
  const token = env['CODEC_TOKEN'] || undefined;
  const { payloadKeys, temporal } = loadTemporalConfig(env);
  const faults = [
    ...(payloadKeys === undefined ? ['TEMPORAL_PAYLOAD_KEYS is not set: there is nothing to open.'] : []),
    ...(token !== undefined && token.length < TOKEN_LENGTH_MIN
      ? [`CODEC_TOKEN must have at least ${TOKEN_LENGTH_MIN} characters.`]
      : []),
    ...(host !== LOOPBACK && token === undefined ? [`CODEC_TOKEN is required when --host is not ${LOOPBACK}.`] : []),
  ];
  if (payloadKeys === undefined || faults.length > 0) throw new CommandError(EXIT.configuration, faults.join('\n'));
  return { codec: createPayloadCodec(payloadKeys), namespace: temporal.namespace ?? 'default', token };
}

export type Address = { readonly host: string; readonly port: number };

/** @param listen starts the server and returns its URL */
export const codecProgram = (
  env: NodeJS.ProcessEnv,
  listen: (options: CodecOptions, address: Address) => Promise<string>,
) =>
  command({
    name: 'codec',
    description: 'Serves Temporal UI and the temporal program: opens sealed payloads with TEMPORAL_PAYLOAD_KEYS.',
    takes: TAKES,
    json: false,
    run: ({ print }: Printer, { origins, host, port }: ValuesOf<typeof TAKES>) =>
      withCommandErrors(async () => {
        const settings = readSettings(host, env);
        const url = await listen({ ...settings, origins }, { host, port });
        print(`Opens payloads of namespace ${settings.namespace} at ${url}`);
        return EXIT.done;
      }),
  });

async function listen(options: CodecOptions, address: Address): Promise<string> {
  try {
    return await buildCodec(options).listen(address);
  } catch (error) {
    throw new CommandError(EXIT.refused, error instanceof Error ? error.message : 'The server did not start.');
  }
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const program = codecProgram(process.env, listen);
  process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) => act(printer));
}
