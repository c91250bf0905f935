/**
 * Losing everything but a backup of PostgreSQL: it is restored into another server, beside an empty Temporal, and the
 * operator's one command has every settlement go on from its row.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrate } from '../../db/migrate.ts';
import { settlementWorkflowId, verificationWorkflowId, webhookDeliveryWorkflowId } from '../../domain/workflow-id.ts';
import { runOps } from '../../ops/main.ts';
import { type Cluster, ensureDatabase, startCluster } from '../../scripts/stack/postgres.ts';
import { type PostgresProgram, postgresProgram } from '../../scripts/stack/postgres-program.ts';
import { type Caller, TEST_KEYS } from '../support/api.ts';
import { backUp } from '../support/backup.ts';
import { createRecipient, type Json, jsonOf, readSettlement, settleBody, untilStatus } from '../support/partner.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import { complete, openVerification } from '../support/verification.ts';

const DATABASE = 'settlement';
/** Nothing here is to survive the machine. */
const FORGETFUL = { fsync: 'off', autovacuum: 'off', dynamic_shared_memory_type: 'mmap' };
const TIMEOUT_MS = 180_000;
/** Four servers start and stop here: a busy machine takes its time. */
const SETTLE_TIMEOUT_MS = 60_000;

let folder: string;
let program: PostgresProgram;
let original: Cluster;
let restored: Cluster | undefined;
let before: TestStack;
let after: TestStack | undefined;
let caller: Caller;

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'settlement-restore-'));
  await chmod(folder, 0o755);
  program = await postgresProgram(async () => folder);
  original = await startCluster({ program, directory: path.join(folder, 'original'), settings: FORGETFUL });
  before = await stackOn(original);
  caller = await before.api.createCaller();
}, TIMEOUT_MS);
afterAll(async () => {
  await after?.close();
  await restored?.stop();
  await original.stop();
  await rm(folder, { recursive: true, force: true });
}, TIMEOUT_MS);

/** Always a namespace of its own, with nothing in it. */
async function stackOn(cluster: Cluster): Promise<TestStack> {
  const databaseUrl = await ensureDatabase(cluster, DATABASE);
  await migrate(databaseUrl);
  return await startStack({ api: { database: { databaseUrl, drop: async () => undefined } } });
}

type Command = {
  readonly key: string;
  readonly body: Json;
  readonly answer: { readonly status: number; readonly body: string };
  readonly settlementId: string;
};

async function settle(
  stack: TestStack,
  recipient: Record<string, unknown> = {},
  overrides: Record<string, unknown> = {},
): Promise<Command> {
  const body = settleBody(await createRecipient(stack, caller, recipient), overrides);
  const key = crypto.randomUUID();
  const answer = await stack.api.call(caller, 'POST', '/v2/settle', body, { 'idempotency-key': key });
  expect(answer.statusCode, answer.body).toBe(202);
  return {
    key,
    body,
    answer: { status: answer.statusCode, body: answer.body },
    settlementId: jsonOf(answer).settlement_id,
  };
}

const event = async (stack: TestStack, { settlementId }: Command, name: string) => {
  const answer = await stack.api.call(caller, 'POST', `/v2/test-helpers/settlements/${settlementId}/events`, {
    event: name,
  });
  expect(answer.statusCode, answer.body).toBeLessThan(300);
};
const certificateOf = async (stack: TestStack, settlementId: string) => {
  const { certificate_id: certId } = await readSettlement(stack, caller, settlementId);
  const { rawPayload, headers } = await stack.api.call(caller, 'GET', `/v1/caribbean/certificate/${certId}`);
  return { certId, bytes: rawPayload, signature: headers['x-certificate-signature'] };
};

test('after a restore beside an empty Temporal, every settlement goes on from its row and settles once', {
  timeout: TIMEOUT_MS,
}, async () => {
  await before.api.call(caller, 'POST', '/v1/webhooks', {
    url: 'http://127.0.0.1:9/',
    event_types: ['settlement.accepted'],
  });
  const settled = await settle(before);
  const unpaid = await settle(before, {}, { card_token: 'tok_manual' });
  const held = await settle(before, {}, { amount: '1500.00' });
  const sent = await settle(before, { name: 'PAYOUT PENDING' });
  const verification = await openVerification(before.api, caller, held.body.recipient_id);
  await untilStatus(before, caller, settled.settlementId, 'settled');
  await untilStatus(before, caller, unpaid.settlementId, 'awaiting_funds');
  await untilStatus(before, caller, held.settlementId, 'compliance_hold');
  await untilStatus(before, caller, sent.settlementId, 'paying_out');
  const certificate = await certificateOf(before, settled.settlementId);
  await before.stopWorker();
  const accepted = await settle(before);

  const copy = path.join(folder, 'restored');
  let during: Command | undefined;
  await backUp(
    original.serverUrl,
    { from: path.join(folder, 'original'), to: copy, account: program.account },
    async () => {
      during = await settle(before);
      // What stands in the outbox is carried by the restored service itself; what was carried has to be redispatched.
      await expect
        .poll(() => before.api.connection.pool.query('SELECT 1 FROM outbox').then(({ rowCount }) => rowCount), {
          timeout: 10_000,
        })
        .toBe(0);
    },
  );
  const late = await settle(before);
  await before.close();
  await original.stop();

  restored = await startCluster({ program, directory: copy, settings: FORGETFUL });
  after = await stackOn(restored);
  const printed: string[] = [];
  const ops = (...args: string[]) =>
    runOps(
      {
        runtime: 'local-sandbox',
        db: stack.api.connection.db,
        keys: TEST_KEYS,
        client: () => stack.temporal,
        now: () => new Date(),
        print: (line) => printed.push(line),
        warn: (line) => printed.push(line),
      },
      args,
    );
  const stack = after;
  if (!during) expect.fail('nothing was accepted during the backup');
  const open = [unpaid, held, sent, accepted, during];
  expect(await ops('waiting')).toBe(0);
  for (const { settlementId } of open) expect(printed.filter((line) => line.includes(settlementId))).toHaveLength(1);
  expect(await ops('redispatch', '--all', '--operator', 'ana', '--note', 'restored from the backup of eight')).toBe(0);
  expect(printed).toContain(`settlements: ${open.length} will be started or signalled.`);
  expect(printed).toContain('verifications: 1 will be started or signalled.');

  await untilStatus(stack, caller, unpaid.settlementId, 'awaiting_funds');
  await event(stack, unpaid, 'collection_succeeded');
  await event(stack, sent, 'payout_confirmed');
  expect((await complete(stack.api, caller, verification.verification_id, { status: 'verified' })).statusCode).toBe(
    200,
  );
  const stateOf = async ({ settlementId }: Command) => (await readSettlement(stack, caller, settlementId)).status;
  await expect
    .poll(() => Promise.all(open.map(stateOf)), { timeout: SETTLE_TIMEOUT_MS })
    .toEqual(open.map(() => 'settled'));

  const { rows: outcomes } = await stack.api.connection.pool.query(
    `SELECT s.status, (SELECT count(*)::int FROM certificates c WHERE c.settlement_id = s.settlement_id) AS certificates,
       (SELECT count(*)::int FROM settlement_transitions t WHERE t.settlement_id = s.settlement_id AND to_status = 'settled') AS settled,
       (SELECT coalesce(sum(amount_minor), 0)::int FROM postings p WHERE p.settlement_id = s.settlement_id AND account = 'refund_due') AS due,
       (SELECT count(*)::int FROM settlement_exceptions e WHERE e.settlement_id = s.settlement_id) AS exceptions,
       (SELECT count(*)::int FROM audit_entries a WHERE a.object_id = s.settlement_id) AS audited
     FROM settlements s ORDER BY s.created_at`,
  );
  const once = { status: 'settled', certificates: 1, settled: 1, due: 0, exceptions: 0 };
  expect(outcomes).toEqual([{ ...once, audited: 0 }, ...open.map(() => ({ ...once, audited: 1 }))]);

  for (const { key, body, answer } of [settled, ...open]) {
    const again = await stack.api.call(caller, 'POST', '/v2/settle', body, { 'idempotency-key': key });
    expect([again.statusCode, again.body, again.headers['idempotency-replayed']]).toEqual([
      answer.status,
      answer.body,
      'true',
    ]);
  }
  expect(await certificateOf(stack, settled.settlementId)).toEqual(certificate);
  for (const { settlementId } of [settled, ...open]) {
    const { certId: cert_id } = await certificateOf(stack, settlementId);
    const verified = await stack.api.call(
      caller,
      'GET',
      `/v1/caribbean/certificate/${cert_id}/verify?settlement_id=${settlementId}`,
    );
    expect(verified.json()).toMatchObject({ valid: true });
  }
  // Accepted after the backup was taken: unknown now, and its key as good as new.
  expect((await stack.api.call(caller, 'GET', `/v2/settle/${late.settlementId}`)).statusCode).toBe(404);

  const statusOf = (workflowId: string) =>
    stack.temporal.workflow
      .getHandle(workflowId)
      .describe()
      .then(({ status }) => status.name);
  expect(await statusOf(settlementWorkflowId(held.settlementId))).toBe('COMPLETED');
  expect(await statusOf(verificationWorkflowId(verification.verification_id))).toBe('COMPLETED');
  const { rows: deliveries } = await stack.api.connection.pool.query<{ delivery_id: string }>(
    `SELECT delivery_id FROM webhook_deliveries WHERE status = 'pending'`,
  );
  for (const { delivery_id } of deliveries)
    expect(await statusOf(webhookDeliveryWorkflowId(delivery_id, 1))).toBe('RUNNING');
  printed.length = 0;
  expect(await ops('redispatch', '--all', '--operator', 'ana', '--note', 'once more')).toBe(0);
  expect(printed[0]).toBe('settlements: 0 will be started or signalled.');
});
