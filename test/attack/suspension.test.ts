/**
 * A suspended organization (contract §2): an operator stops it, its reads are answered, everything else is refused
 * before it is validated, and what it has begun continues.
 */
import { describe, expect } from 'vitest';
import { newId } from '../../db/id.ts';
import { nameOf, OPERATIONS, type OperationRow } from '../contract/operations.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { cardprocBody, sendCardproc } from '../support/cardproc.ts';
import { callAs, consumerRecipientBody, signIn } from '../support/consumer.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createOps, listAudit } from '../support/ops.ts';
import { createRecipient, settleBody } from '../support/partner.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { openSettlement } from '../support/settlement.ts';
import { subscribe } from '../support/webhook.ts';

const AUDIT_ARGS = ['--operator', 'ana', '--note', 'a flood', '--yes'];
const ANYTHING: Record<string, string> = { cert_id: `CERT-${'0'.repeat(32)}` };

const test = withApi()
  .extend('ops', FILE, ({ api, clock }) => createOps(api.connection.db, { now: clock.now }))
  .extend('suspended', FILE, async ({ api, ops }): Promise<Caller> => {
    const caller = await api.createCaller();
    await ops('org', 'suspend', caller.orgId, ...AUDIT_ARGS);
    return caller;
  });

const urlOf = ({ path }: OperationRow, orgId: string): string =>
  path.replace(/\{([a-z_]+)\}/g, (_, name: string) => (name === 'org_id' ? orgId : (ANYTHING[name] ?? newId())));

/** Reads by POST: they price something, and store nothing. */
const READ_BY_POST = ['/v2/estimate', '/v1/fees/estimate', '/v1/caribbean/estimate'];
const isRead = ({ method, path }: OperationRow): boolean => method === 'GET' || READ_BY_POST.includes(path);
const operations = OPERATIONS.filter(({ auth }) => auth === 'api_key').map((row) => [nameOf(row), row] as const);

describe.each(operations.filter(([, row]) => !isRead(row)))('%s', (_name, row) => {
  test('403 organization_suspended, and nothing is written', async ({ api, suspended }) => {
    await expectUnchanged(api.connection.pool, async () => {
      const answer = await api.call(suspended, row.method, urlOf(row, suspended.orgId));
      expect([answer.statusCode, answer.json()]).toEqual([
        403,
        expect.objectContaining({ code: 'organization_suspended' }),
      ]);
    });
  });
});

describe.each(operations.filter(([, row]) => isRead(row)))('%s', (_name, row) => {
  test('answers a suspended organization as every other one', async ({ api, partner, suspended }) => {
    const statuses = [];
    for (const caller of [partner, suspended])
      statuses.push((await api.call(caller, row.method, urlOf(row, caller.orgId))).statusCode);
    expect(statuses[1]).toBe(statuses[0]);
    expect(statuses[1]).not.toBe(403);
  });
});

const settle = async (api: TestApi, caller: Caller, recipientId: string, key: string) =>
  (await api.call(caller, 'POST', '/v2/settle', settleBody(recipientId), { 'idempotency-key': key })).statusCode;

test('a suspension holds from the next request on, for a repeated request too, and ends when it is resumed', async ({
  api,
  ops,
}) => {
  const caller = await api.createCaller();
  const recipientId = await createRecipient(api, caller);
  const answers = [await settle(api, caller, recipientId, 'first-settlement-key')];
  const read = async () => (await api.call(caller, 'GET', `/v1/orgs/${caller.orgId}`)).json().status;
  const shown = [await read()];
  const done = await ops('org', 'suspend', caller.orgId, ...AUDIT_ARGS, '--json');
  // Nothing is counted: the brake never waits for that.
  expect(JSON.parse(done.printed.join(''))).toEqual({ organization: caller.orgId, status: 'suspended' });
  answers.push(
    await settle(api, caller, recipientId, 'first-settlement-key'),
    await settle(api, caller, recipientId, 'second-settlement-key'),
  );
  shown.push(await read());
  await ops('org', 'resume', caller.orgId, ...AUDIT_ARGS);
  answers.push(
    await settle(api, caller, recipientId, 'first-settlement-key'),
    await settle(api, caller, recipientId, 'second-settlement-key'),
  );
  shown.push(await read());
  expect(answers).toEqual([202, 403, 403, 202, 202]);
  expect(shown).toEqual(['active', 'suspended', 'active']);
  expect(await listAudit(api.connection.db, caller.orgId)).toMatchObject([
    { action: 'organization_suspend', operator: 'ana', note: 'a flood', orgId: caller.orgId },
    { action: 'organization_resume', operator: 'ana', note: 'a flood', orgId: caller.orgId },
  ]);
});

test('the scope of a key is checked first, and an invalid key learns nothing of the suspension', async ({
  api,
  suspended,
}) => {
  const reader = await api.createKey(suspended.orgId, 'read');
  const refusals = [];
  for (const caller of [reader, { ...suspended, apiKey: `${suspended.apiKey.slice(0, -1)}#` }])
    refusals.push((await api.call(caller, 'POST', '/v2/settle', {})).json().code);
  expect(refusals).toEqual(['scope_insufficient', 'credential_invalid']);
});

test("what a suspended organization has begun continues: a provider's evidence is stored", async ({ api, ops }) => {
  const caller = await api.createCaller();
  const settlementId = await openSettlement(api, caller, ['awaiting_funds']);
  await ops('org', 'suspend', caller.orgId, ...AUDIT_ARGS);
  expect((await sendCardproc(api, cardprocBody(settlementId))).statusCode).toBe(200);
  const read = await api.call(caller, 'GET', `/v2/settle/${settlementId}`);
  expect([read.statusCode, read.json().amount_received]).toEqual([200, '250.00']);
});

test("a consumer's session is refused as well, and reads", async ({ api, ops }) => {
  const consumer = await signIn(api);
  await ops('org', 'suspend', consumer.consumerId, ...AUDIT_ARGS);
  const write = await callAs(api, consumer, 'POST', '/consumer/recipients', consumerRecipientBody());
  expect([write.statusCode, write.json().code]).toEqual([403, 'organization_suspended']);
  expect((await callAs(api, consumer, 'GET', '/consumer/recipients')).statusCode).toBe(200);
});

test.for<[string, (orgId: string) => string[], RegExp]>([
  ['suspended twice', (orgId) => ['suspend', orgId], /suspended since/],
  ['resumed while it is active', () => ['resume', 'active'], /not suspended/],
  ['unknown', () => ['suspend', 'no-such-organization'], /not_found/],
])('an organization is not %s', async ([, argsOf, reason], { api, ops, suspended, partner }) => {
  const args = argsOf(suspended.orgId).map((arg) => (arg === 'active' ? partner.orgId : arg));
  await expectUnchanged(api.connection.pool, async () => {
    const { exitCode, warned } = await ops('org', ...args, ...AUDIT_ARGS);
    expect([exitCode, warned.join('\n')]).toEqual([1, expect.stringMatching(reason)]);
  });
});

test('a preview of a suspension counts what is under way, nothing that has ended, and writes nothing', async ({
  api,
  ops,
}) => {
  const caller = await api.createCaller();
  const { orgId } = caller;
  await openSettlement(api, caller);
  await openSettlement(api, caller, ['canceled']);
  const subscribed = () => subscribe(api, caller, 'http://127.0.0.1:9999/');
  const [, disabled, deleted] = [await subscribed(), await subscribed(), await subscribed()];
  await api.call(caller, 'PATCH', `/v1/webhooks/${disabled['webhook_id']}`, { status: 'disabled' });
  await api.call(caller, 'DELETE', `/v1/webhooks/${deleted['webhook_id']}`);
  await api.createKey(orgId, 'read', { expiresAt: new Date(Date.now() - 1) });
  await api.createKey(orgId, 'read', { status: 'revoked', revokedAt: new Date() });
  const previewed = (...more: string[]) =>
    expectUnchanged(api.connection.pool, async () => {
      const { exitCode, printed } = await ops('org', 'suspend', orgId, ...AUDIT_ARGS.slice(0, -1), ...more);
      expect(exitCode).toBe(3);
      return printed.join('\n');
    });
  const underWay = { open_settlements: 1, enabled_subscriptions: 1, valid_keys: 1 };
  expect(JSON.parse(await previewed('--json'))).toEqual({
    preview: { organization: orgId, status: 'suspended', ...underWay },
  });
  expect(await previewed()).toContain(`${orgId}, open settlements 1, enabled subscriptions 1, valid keys 1`);
});
