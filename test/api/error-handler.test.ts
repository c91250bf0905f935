import fastify from 'fastify';
import pg from 'pg';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { refusalOf } from '../../api/http/client-error.ts';
import { handleError } from '../../api/http/error-handler.ts';
import { faultOfField } from '../../api/http/request-fault.ts';
import { DomainError } from '../../domain/error.ts';

/** The answer to a request that fails so. */
async function answerTo(error: Error, url = '/') {
  const app = fastify();
  app.setErrorHandler(handleError);
  app.get('/', async () => {
    throw error;
  });
  return await app.inject(url);
}

test.each([
  ['amount', ['body', 'amount']],
  ['bank_details.routing_number', ['body', 'bank_details', 'routing_number']],
  ['allowed_cidrs.1', ['body', 'allowed_cidrs', 1]],
  [null, ['body']],
])('a broken rule about %s is a value_error at %j', (field, loc) => {
  expect(faultOfField({ field, rule: 'must be valid' })).toEqual({
    loc,
    msg: 'Value error, must be valid',
    type: 'value_error',
  });
});

test.each([
  [60_001, '61'],
  [60_000, '60'],
  [0, '1'],
  [-5_000, '1'],
])(
  'the Retry-After of a quota that is free again in %i ms is %s s: never earlier, and never none',
  async (ms, seconds) => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const answer = await answerTo(new DomainError('quota_exceeded', {}, undefined, new Date(Date.now() + ms)));
    expect([answer.statusCode, answer.headers['retry-after']]).toEqual([429, seconds]);
  },
);

test('a problem names the path of its request, and never the query, which may hold a secret', async () => {
  const answer = await answerTo(new DomainError('credential_missing'), '/?api_key=planted');
  expect(answer.json().instance).toBe('/');
  expect(answer.body).not.toContain('planted');
});

test.each([
  ['HPE_INVALID_METHOD', true, 'request_malformed'],
  ['HPE_HEADER_OVERFLOW', true, 'headers_too_large'],
  ['ERR_HTTP_REQUEST_TIMEOUT', true, 'request_timeout'],
  ['ECONNRESET', true, undefined],
  ['HPE_INVALID_METHOD', false, undefined],
])('bytes that are no request are answered, unless their caller is gone: %s', (code, writable, refusal) => {
  expect(refusalOf(Object.assign(new Error(code), { code }), { writable })).toBe(refusal);
});

describe('a failure of the database', () => {
  const ofPostgres = (code: string) => Object.assign(new pg.DatabaseError('', 0, 'error'), { code });
  const ofSystem = (code: string) => Object.assign(new Error(`read ${code}`), { code });

  test.each<[string, Error]>([
    ...[
      ...['08006', '25006', '25P03', '26000', '28P01', '3D000', '40001', '40P01', '42P05', '53300', '55P03', '57014'],
      ...['57P01', '58030', 'XX000'],
    ].map((code): [string, Error] => [code, ofPostgres(code)]),
    ...['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH', 'ENETDOWN'].map(
      (code): [string, Error] => [code, ofSystem(code)],
    ),
    // The driver's own sentences.
    ...[
      'Query read timeout',
      'Connection terminated',
      'Connection terminated unexpectedly',
      'timeout exceeded when trying to connect',
      'Client was closed and is not queryable',
      'Client has encountered a connection error and is not queryable',
    ].map((text): [string, Error] => [text, new Error(text)]),
  ])('that may be over soon is 503, so that the caller repeats the request: %s', async (_what, error) => {
    const answer = await answerTo(error);
    expect([answer.statusCode, answer.json().code, answer.headers['retry-after']]).toEqual([
      503,
      'temporarily_unavailable',
      '2',
    ]);
  });

  test.each<[string, Error]>([
    ...['22P02', '23505', '25001', '42501', '42P01', '57000'].map((code): [string, Error] => [code, ofPostgres(code)]),
    ['ENOENT', ofSystem('ENOENT')],
    ['no known sentence', new Error('queryable')],
  ])('that a repetition would meet again is 500: %s', async (_what, error) => {
    const answer = await answerTo(error);
    expect([answer.statusCode, answer.json().code]).toEqual([500, 'internal_error']);
  });
});
