/**
 * Structured logs of the API and the worker. They hold nothing secret or personal. The fields of a request are on an
 * allow-list. Of an error, only kind, code and stack are logged: messages and query parameters can contain data.
 */
import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino';
import { causeOf } from '../db/client.ts';

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
  '*.code_digits',
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
  return destination ? pino(settings, destination) : pino(settings);
}

/** Kind, code and stack of an error; never its message, which can contain data. */
export function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { kind: typeof error };
  const cause = causeOf(error);
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  const place = error.stack
    ?.split('\n')
    .filter((line) => line.trimStart().startsWith('at '))
    .slice(0, 8)
    .map((line) => line.trim());
  return { kind: cause instanceof Error ? cause.name : error.name, ...(code === undefined ? {} : { code }), place };
}
