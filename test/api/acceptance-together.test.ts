/**
 * Acceptances of one organization that arrive together share their statements (`db/queries/acceptance.ts`). Each of
 * them is written and answered as it would be alone.
 */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { describe, expect, vi } from 'vitest';
import { connect } from '../../db/client.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { withApi } from '../support/fixture.ts';
import { createRecipient, jsonOf, settleBody } from '../support/partner.ts';
import { stretched } from '../support/patience.ts';

const TOGETHER = 12;
const LAST = 'reference of the last one';
/** Much longer than an acceptance that waits for no lock. */
const LOCK_TIMEOUT_MS = 2_000;

/** `other`: one more API on the same database, as another process has it, which waits this long for a lock. */
const test = withApi().extend('other', async ({ api, newApi }, { onCleanup }) => {
  const tenants = { lockTimeoutMs: LOCK_TIMEOUT_MS, turnTimeoutMs: stretched(30_000) };
  const options = { poolSizeMax: 10, name: 'test-other', onIdleError: () => undefined, tenants };
  const connection = connect(api.databaseUrl, options);
  onCleanup(connection.close);
  return await newApi({ deps: { db: connection.db } });
});

const keys = (): string[] => Array.from({ length: TOGETHER }, () => randomUUID());

/** Requests with these keys at once; the last one names `LAST` as its reference. */
async function acceptAll(api: TestApi, partner: Caller, idempotencyKeys: readonly string[]) {
  const recipientId = await createRecipient(api, partner);
  return await Promise.all(
    idempotencyKeys.map((key, index) => {
      const reference = index === idempotencyKeys.length - 1 ? LAST : `reference ${index}`;
      const body = settleBody(recipientId, { reference, metadata: { place: `"${index}\\, {NULL}` } });
      return api.call(partner, 'POST', '/v2/settle', body, { 'idempotency-key': key });
    }),
  );
}

/** The rows of an organization that acceptances write. */
async function writtenFor(api: TestApi, { orgId }: Caller) {
  const { rows } = await api.owner.pool.query(
    `SELECT (SELECT count(*)::int FROM idempotency_keys k WHERE k.org_id = s.org_id AND k.resource_id = s.settlement_id) AS keys,
       (SELECT count(*)::int FROM settlement_transitions t WHERE t.settlement_id = s.settlement_id) AS transitions,
       (SELECT count(*)::int FROM outbox o WHERE o.object_id = s.settlement_id AND o.request_id = s.request_id) AS messages,
       (SELECT count(*)::int FROM events e WHERE e.object_id = s.settlement_id) AS events,
       (SELECT count(*)::int FROM events e JOIN webhook_deliveries d USING (event_id)
         WHERE e.object_id = s.settlement_id AND d.request_id = s.request_id) AS deliveries
     FROM settlements s WHERE org_id = $1`,
    [orgId],
  );
  return rows;
}

describe('acceptances that arrive together', () => {
  test('share statements, and each has its own rows and answer', async ({ api }) => {
    const partner = await api.createCaller();
    const webhook = { url: 'https://partner.example/', event_types: ['*'] };
    expect((await api.call(partner, 'POST', '/v1/webhooks', webhook)).statusCode).toBe(201);
    const query = vi.spyOn(pg.Client.prototype, 'query');
    const answers = await acceptAll(api, partner, keys());
    const names = query.mock.calls.map(([sent]) => (sent as { readonly name?: string }).name);
    query.mockRestore();
    expect(names).toContain('read_acceptances_facts');
    expect(names).toContain('insert_acceptances');
    expect(names.filter((name) => name?.startsWith('insert_acceptance')).length).toBeLessThan(TOGETHER / 2);

    expect(answers.map(({ statusCode }) => statusCode)).toEqual(answers.map(() => 202));
    expect(new Set(answers.map((answer) => jsonOf(answer).settlement_id)).size).toBe(TOGETHER);
    for (const [index, answer] of answers.entries()) {
      expect(jsonOf(answer).metadata).toEqual({ place: `"${index}\\, {NULL}` });
      const read = await api.call(partner, 'GET', `/v2/settle/${jsonOf(answer).settlement_id}`);
      expect(jsonOf(read)).toMatchObject({ reference: jsonOf(answer).reference, metadata: jsonOf(answer).metadata });
    }
    expect(await writtenFor(api, partner)).toEqual(
      answers.map(() => ({ keys: 1, transitions: 1, messages: 1, events: 1, deliveries: 1 })),
    );
  });

  test('make one settlement for each key, and the same answer for all with that key', async ({ api }) => {
    const partner = await api.createCaller();
    const recipientId = await createRecipient(api, partner);
    const [one = '', other = ''] = keys();
    const answers = await Promise.all(
      Array.from({ length: TOGETHER }, (_, index) =>
        api.call(partner, 'POST', '/v2/settle', settleBody(recipientId), {
          'idempotency-key': index % 2 === 0 ? one : other,
        }),
      ),
    );
    expect(new Set(answers.map(({ statusCode, body }) => `${statusCode} ${body}`)).size).toBe(2);
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(answers.map(() => 202));
    expect(answers.filter(({ headers }) => headers['idempotency-replayed'] !== 'true')).toHaveLength(2);
    expect(await writtenFor(api, partner)).toHaveLength(2);
  });

  test('409 for another request with a key of the same group', async ({ api }) => {
    const partner = await api.createCaller();
    const key = randomUUID();
    const answers = await acceptAll(api, partner, [...keys(), key, key]);
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([...answers.slice(1).map(() => 202), 409]);
    expect(await writtenFor(api, partner)).toHaveLength(TOGETHER + 1);
  });

  test('are accepted beside one that PostgreSQL refuses', async ({ newApi }) => {
    const api = await newApi();
    const partner = await api.createCaller();
    await api.owner.pool.query(`ALTER TABLE settlements ADD CHECK (reference <> '${LAST}')`);
    const answers = await acceptAll(api, partner, keys());
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([...answers.slice(1).map(() => 202), 500]);
    expect(await writtenFor(api, partner)).toHaveLength(TOGETHER - 1);
  });

  test('are accepted beside one whose key another transaction holds, and no other organization waits for it', async ({
    api,
    other,
  }) => {
    const [partner, neighbour] = await Promise.all([api.createCaller(), api.createCaller()]);
    const body = settleBody(await createRecipient(api, neighbour));
    const idempotencyKeys = keys();
    const holder = await api.owner.pool.connect();
    await holder.query('BEGIN');
    await holder.query(
      `INSERT INTO idempotency_keys (org_id, key, request_hash, field_digests, resource_id, response_status,
         response_body, created_at)
       VALUES ($1, $2, '\\x00', '{}', '', 202, '\\x00', now())`,
      [partner.orgId, idempotencyKeys.at(-1)],
    );
    const ended: string[] = [];
    const [answers, beside] = await Promise.all([
      acceptAll(other, partner, idempotencyKeys).finally(() => ended.push('held')),
      other
        .call(neighbour, 'POST', '/v2/settle', body, { 'idempotency-key': randomUUID() })
        .finally(() => ended.push('beside')),
    ]);
    await holder.query('ROLLBACK');
    holder.release();
    expect(ended).toEqual(['beside', 'held']);
    expect(beside.statusCode).toBe(202);
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([...answers.slice(1).map(() => 202), 503]);
    expect(await writtenFor(api, partner)).toHaveLength(TOGETHER - 1);
  });

  test('of two processes bind the same keys in any order, and none is refused', async ({ api, other }) => {
    const partner = await api.createCaller();
    const idempotencyKeys = keys();
    const recipientId = await createRecipient(api, partner);
    const accept = (by: TestApi, key: string) =>
      by.call(partner, 'POST', '/v2/settle', settleBody(recipientId), { 'idempotency-key': key });
    const answers = await Promise.all([
      ...idempotencyKeys.map((key) => accept(api, key)),
      ...idempotencyKeys.toReversed().map((key) => accept(other, key)),
    ]);
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(answers.map(() => 202));
    expect(await writtenFor(api, partner)).toHaveLength(TOGETHER);
  });
});
