import fastify from 'fastify';
import { expect, onTestFinished, test, vi } from 'vitest';
import { handleError } from '../../api/http/error-handler.ts';
import { faultOfField } from '../../api/http/request-fault.ts';
import { DomainError } from '../../domain/error.ts';

test.each([
  ['amount', ['body', 'amount']],
  ['bank_details.routing_number', ['body', 'bank_details', 'routing_number']],
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
    const app = fastify();
    app.setErrorHandler(handleError);
    app.get('/', async () => {
      throw new DomainError('quota_exceeded', {}, undefined, new Date(Date.now() + ms));
    });
    const answer = await app.inject('/');
    expect([answer.statusCode, answer.headers['retry-after']]).toEqual([429, seconds]);
  },
);
