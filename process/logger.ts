/**
 * Structured logs of the API and the worker. They hold nothing secret or personal. The fields of a request are on an
 * allow-list. Of an error, only what `describeError` returns is logged.
 */
import pg from 'pg';
import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino';
import { causeOf } from '../db/client.ts';

const STANDARD_OUTPUT = 1;

const REDACTED = [
  'authorization',
  '*.authorization',
  '["x-api-key"]',
  '*["x-api-key"]',
  '*.api_key',
  '*.secret',
  '*.account_number',
  '*.card_token',
  '*.banklink_account_token',
  '*.sandbox_code',
  '*.access_token',
  '*.sdk_access_token',
];

/** @param destination by default, standard output */
export function createLogger(options: { level: string; name: string }, destination?: DestinationStream): Logger {
  const settings: LoggerOptions = {
    level: options.level,
    base: { process: options.name },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: REDACTED, censor: '[redacted]' },
    serializers: { err: describeError },
  };
  return pino(settings, destination ?? standardOutput());
}

/** Lines that standard output has not taken yet may have so many bytes; further lines are dropped. */
const WAITING_BYTES_MAX = 8 * 1024 * 1024;

/**
 * A disk that is full, or a reader that does not read, costs lines of the log and never the service. Without this, an
 * error of pino's stream ends the process, and at its exit pino tries without end to write what is left: SIGTERM does
 * nothing then.
 */
function standardOutput(): DestinationStream {
  const stream = pino.destination({ dest: STANDARD_OUTPUT, sync: false, maxLength: WAITING_BYTES_MAX });
  const { flushSync } = stream;
  stream.on('error', () => {
    stream.flushSync = () => undefined;
  });
  stream.on('write', () => {
    stream.flushSync = flushSync;
  });
  return stream;
}

const CAUSES_MAX = 5;
const FRAMES_MAX = 8;

/**
 * What is safe of an error: its kind and code, the kinds of its causes, its place in the code, and of an error of
 * PostgreSQL which table, constraint and routine it is about. Never its message or its detail, which can contain data.
 */
export function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { kind: typeof error };
  const [cause = error, ...deeper] = chainOf(causeOf(error));
  const code = [cause, ...deeper].map(codeOf).find((found) => found !== undefined);
  // A message can have lines that look like a place.
  const place = error.stack
    ?.replace(error.message, '')
    .split('\n')
    .filter((line) => line.trimStart().startsWith('at '))
    .slice(0, FRAMES_MAX)
    .map((line) => line.trim());
  return {
    kind: cause.name,
    ...(code === undefined ? {} : { code }),
    ...(deeper.length === 0 ? {} : { causes: deeper.map(({ name }) => name) }),
    ...databaseFieldsOf(cause),
    place,
  };
}

/** The error, its cause, the cause of that, and so on. */
function chainOf(error: unknown): Error[] {
  const chain: Error[] = [];
  for (let next = error; next instanceof Error && chain.length < CAUSES_MAX; next = next.cause) chain.push(next);
  return chain;
}

const codeOf = (error: Error): unknown => ('code' in error ? error.code : undefined);

/** Names of the schema and of PostgreSQL's own code; values are only in the other fields. */
function databaseFieldsOf(error: Error): Record<string, string> {
  if (!(error instanceof pg.DatabaseError)) return {};
  const { table, column, constraint, routine } = error;
  return Object.fromEntries(
    Object.entries({ table, column, constraint, routine }).filter((entry): entry is [string, string] => !!entry[1]),
  );
}
