/**
 * Budgets of round trips to PostgreSQL, counted, so that growth is noticed. Some statements run once
 * a second or once a minute for a whole process, so the least of several requests counts.
 */
import pg from 'pg';
import { describe, expect, vi } from 'vitest';
import { FILE, withApi } from '../support/fixture.ts';
import { createRecipient, settleBody } from '../support/partner.ts';

const test = withApi().extend('recipientId', FILE, ({ api, partner }) => createRecipient(api, partner));

const TIMES = 3;

/** The statements of one request, BEGIN and COMMIT included, each of which is a round trip. */
async function statementsOf(request: () => Promise<unknown>): Promise<string[]> {
  const runs: string[][] = [];
  for (let time = 0; time < TIMES; time += 1) {
    const query = vi.spyOn(pg.Client.prototype, 'query');
    await request();
    runs.push(query.mock.calls.map(([first]) => textOf(first)));
    query.mockRestore();
  }
  return runs.reduce((least, run) => (run.length < least.length ? run : least));
}

function textOf(query: unknown): string {
  if (typeof query === 'string') return query;
  if (typeof query !== 'object' || query === null) return 'unknown';
  if ('name' in query && typeof query.name === 'string') return query.name;
  return 'text' in query ? String(query.text) : 'unknown';
}

describe('an acceptance', () => {
  test.for([0, 2])(
    'makes 3 round trips with %s subscriptions',
    async (subscriptions, { api, recipientId, partner }) => {
      for (let index = 0; index < subscriptions; index += 1) {
        const body = { url: `https://partner.example/${index}`, event_types: ['*'] };
        expect((await api.call(partner, 'POST', '/v1/webhooks', body)).statusCode).toBe(201);
      }
      const accept = async () => {
        const headers = { 'idempotency-key': crypto.randomUUID() };
        const answer = await api.call(partner, 'POST', '/v2/settle', settleBody(recipientId), headers);
        expect(answer.statusCode).toBe(202);
      };
      const statements = await statementsOf(accept);
      expect(statements, statements.join('\n')).toHaveLength(3);
      expect(statements.slice(-2)).toEqual(['read_acceptance_facts', 'insert_acceptance']);
    },
  );

  test('makes 2 round trips and writes nothing when it is repeated', async ({ api, partner, recipientId }) => {
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const body = settleBody(recipientId);
    const first = await api.call(partner, 'POST', '/v2/settle', body, headers);
    const repeat = async () => {
      const answer = await api.call(partner, 'POST', '/v2/settle', body, headers);
      expect(answer.body).toBe(first.body);
    };
    const statements = await statementsOf(repeat);
    expect(statements, statements.join('\n')).toHaveLength(2);
    expect(statements.at(-1)).toBe('read_acceptance_facts');
  });
});

test("a settlement's read makes 2 round trips", async ({ api, partner, recipientId }) => {
  const headers = { 'idempotency-key': crypto.randomUUID() };
  const accepted = await api.call(partner, 'POST', '/v2/settle', settleBody(recipientId), headers);
  const read = async () => {
    const answer = await api.call(partner, 'GET', accepted.headers.location ?? '');
    expect(answer.statusCode).toBe(200);
  };
  const statements = await statementsOf(read);
  expect(statements, statements.join('\n')).toHaveLength(2);
  expect(statements.at(-1)).toBe('read_settlement');
});

test("a recipient's deactivation makes 3 round trips, with its event and the deliveries", async ({ api, partner }) => {
  const webhook = { url: 'https://partner.example/', event_types: ['recipient.deactivated'] };
  expect((await api.call(partner, 'POST', '/v1/webhooks', webhook)).statusCode).toBe(201);
  const recipientIds = await Promise.all(Array.from({ length: TIMES }, () => createRecipient(api, partner)));
  const deactivate = async () => {
    const answer = await api.call(partner, 'DELETE', `/v1/recipients/${recipientIds.pop()}`);
    expect(answer.statusCode).toBe(200);
  };
  const statements = await statementsOf(deactivate);
  expect(statements, statements.join('\n')).toHaveLength(3);
  expect(statements.slice(-2)).toEqual(['read_recipient', 'deactivate_recipient']);
});
