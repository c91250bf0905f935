/**
 * The loss of everything but a backup of PostgreSQL: the backup is restored into another server, with an empty
 * Temporal. One command of the operator then lets every settlement continue from its row.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test as base, expect } from 'vitest';
import { migrate } from '../../db/migrate.ts';
import {
  settlementWorkflowId,
  verificationWorkflowId,
  webhookSubscriptionWorkflowId,
} from '../../domain/workflow-id.ts';
import { runOps } from '../../ops/main.ts';
import { type Cluster, ensureDatabase, startCluster } from '../../scripts/stack/postgres.ts';
import { type PostgresProgram, postgresProgram } from '../../scripts/stack/postgres-program.ts';
import { type Caller, TEST_KEYS } from '../support/api.ts';
import { backUp } from '../support/backup.ts';
import { FILE } from '../support/fixture.ts';
import { createRecipient, type Json, jsonOf, readSettlement, settleBody, untilStatus } from '../support/partner.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import { complete, openVerification } from '../support/verification.ts';

const DATABASE = 'settlement';
/** These servers need not survive a crash. */
const FAST = { fsync: 'off', autovacuum: 'off', dynamic_shared_memory_type: 'mmap' };

/** A service over its own PostgreSQL server and its own empty Temporal namespace. */
type Site = {
  readonly cluster: Cluster;
  readonly directory: string;
  readonly stack: TestStack;
  close(): Promise<void>;
};

const test = base
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  .extend('folder', FILE, async ({}, { onCleanup }) => {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'settlement-restore-'));
    await chmod(folder, 0o755);
    onCleanup(() => rm(folder, { recursive: true, force: true }));
    return folder;
  })
  .extend('program', FILE, ({ folder }) => postgresProgram(async () => folder))
  .extend('original', FILE, async ({ folder, program }, { onCleanup }) => {
    const site = await openSite(program, path.join(folder, 'original'));
    onCleanup(site.close);
    return site;
  })
  /** Restores a copy of the original's files into another server. */
  .extend('restore', FILE, ({ program }, { onCleanup }) => {
    let restored: Site | undefined;
    onCleanup(async () => restored?.close());
    return async (directory: string): Promise<TestStack> => {
      restored = await openSite(program, directory);
      return restored.stack;
    };
  });
test.beforeAll(({ original: _ }) => undefined);

async function openSite(program: PostgresProgram, directory: string): Promise<Site> {
  const cluster = await startCluster({ program, directory, settings: FAST });
  const urls = await ensureDatabase(cluster, DATABASE);
  await migrate(urls);
  const stack = await startStack({ api: { database: { ...urls, drop: async () => undefined } } });
  let closed: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    await stack.close();
    await cluster.stop();
  };
  return {
    cluster,
    directory,
    stack,
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}

type Accepted = {
  readonly key: string;
  readonly body: Json;
  readonly answer: { readonly status: number; readonly body: string };
  readonly settlementId: string;
};

/** A partner's requests to one stack. The partner's key works on a restored stack too. */
const partnerOn = (stack: TestStack, partner: Caller) => ({
  settle: async (
    recipient: Record<string, unknown> = {},
    overrides: Record<string, unknown> = {},
  ): Promise<Accepted> => {
    const body = settleBody(await createRecipient(stack.api, partner, recipient), overrides);
    const key = crypto.randomUUID();
    const answer = await stack.api.call(partner, 'POST', '/v2/settle', body, { 'idempotency-key': key });
    expect(answer.statusCode, answer.body).toBe(202);
    const { settlement_id: settlementId } = jsonOf(answer);
    return { key, body, answer: { status: answer.statusCode, body: answer.body }, settlementId };
  },
  statusOf: async ({ settlementId }: Accepted): Promise<string> =>
    (await readSettlement(stack.api, partner, settlementId)).status,
  untilStatus: ({ settlementId }: Accepted, status: string) => untilStatus(stack.api, partner, settlementId, status),
  sendEvent: async ({ settlementId }: Accepted, event: string): Promise<void> => {
    const url = `/v2/test-helpers/settlements/${settlementId}/events`;
    const answer = await stack.api.call(partner, 'POST', url, { event });
    expect(answer.statusCode, answer.body).toBeLessThan(300);
  },
  certificateOf: async ({ settlementId }: Accepted) => {
    const { certificate_id: certId } = await readSettlement(stack.api, partner, settlementId);
    const { rawPayload, headers } = await stack.api.call(partner, 'GET', `/v1/caribbean/certificate/${certId}`);
    return { certId, bytes: rawPayload, signature: headers['x-certificate-signature'] };
  },
});

/** Settlements in every state that a backup can find, and one that has settled. */
async function fillOriginal(stack: TestStack, partner: Caller) {
  const requests = partnerOn(stack, partner);
  const url = 'http://127.0.0.1:9/';
  await stack.api.call(partner, 'POST', '/v1/webhooks', { url, event_types: ['settlement.accepted'] });
  const settled = await requests.settle();
  const unpaid = await requests.settle({}, { card_token: 'tok_manual' });
  const held = await requests.settle({}, { amount: '1500.00' });
  const sent = await requests.settle({ name: 'PAYOUT PENDING' });
  const { verification_id: verificationId } = await openVerification(stack.api, partner, held.body.recipient_id);
  await requests.untilStatus(settled, 'settled');
  await requests.untilStatus(unpaid, 'awaiting_funds');
  await requests.untilStatus(held, 'compliance_hold');
  await requests.untilStatus(sent, 'paying_out');
  const certificate = await requests.certificateOf(settled);
  await stack.stopWorker();
  const accepted = await requests.settle();
  return { settled, unpaid, held, sent, accepted, verificationId: String(verificationId), certificate };
}

/** The number of rows in the outbox. */
const countOutbox = async ({ api }: TestStack): Promise<number | null> =>
  (await api.connection.pool.query('SELECT 1 FROM outbox')).rowCount;

function operatorOf(stack: TestStack) {
  const printed: string[] = [];
  const print = (line: string): void => void printed.push(line);
  const client = () => stack.temporal;
  const deps = {
    runtime: 'local-sandbox',
    keys: TEST_KEYS,
    rateLimitPerMinute: 1_200,
    retentionDays: { events: 90, quotes: 90 },
    now: () => new Date(),
    client,
    print,
    warn: print,
  } as const;
  return { printed, ops: (...args: string[]) => runOps({ ...deps, db: stack.api.connection.db }, args) };
}

/** The settlements by age: each must have settled once. Its audit entries are counted too. */
async function listResults({ api }: TestStack): Promise<object[]> {
  const { rows } = await api.connection.pool.query(
    `SELECT s.status,
       (SELECT count(*)::int FROM certificates c WHERE c.settlement_id = s.settlement_id) AS certificates,
       (SELECT count(*)::int FROM settlement_transitions t
         WHERE t.settlement_id = s.settlement_id AND to_status = 'settled') AS settled,
       (SELECT coalesce(sum(amount_minor), 0)::int FROM postings p
         WHERE p.settlement_id = s.settlement_id AND account = 'refund_due') AS due,
       (SELECT count(*)::int FROM settlement_exceptions e WHERE e.settlement_id = s.settlement_id) AS exceptions,
       (SELECT count(*)::int FROM audit_entries a WHERE a.object_id = s.settlement_id) AS audited
     FROM settlements s ORDER BY s.created_at`,
  );
  return rows;
}

/** Each key gets its first answer again, and each certificate is valid. */
async function expectSameAnswers(stack: TestStack, partner: Caller, accepted: readonly Accepted[]): Promise<void> {
  const { certificateOf } = partnerOn(stack, partner);
  for (const { key, body, answer, settlementId } of accepted) {
    const again = await stack.api.call(partner, 'POST', '/v2/settle', body, { 'idempotency-key': key });
    const { statusCode, headers } = again;
    expect([statusCode, again.body, headers['idempotency-replayed']]).toEqual([answer.status, answer.body, 'true']);
    const { certId } = await certificateOf({ key, body, answer, settlementId });
    const url = `/v1/caribbean/certificate/${certId}/verify?settlement_id=${settlementId}`;
    expect((await stack.api.call(partner, 'GET', url)).json()).toMatchObject({ valid: true });
  }
}

/** The workflows that waited have completed, and those of subscriptions with retries run. */
async function expectWorkflows({ api, temporal }: TestStack, completed: readonly string[]): Promise<void> {
  const statusOf = async (workflowId: string): Promise<string> =>
    (await temporal.workflow.getHandle(workflowId).describe()).status.name;
  for (const workflowId of completed) expect(await statusOf(workflowId)).toBe('COMPLETED');
  const { rows } = await api.connection.pool.query<{ webhook_id: string }>(
    `SELECT DISTINCT webhook_id FROM webhook_deliveries WHERE status = 'pending' AND lane_key IS NULL`,
  );
  for (const { webhook_id } of rows) expect(await statusOf(webhookSubscriptionWorkflowId(webhook_id))).toBe('RUNNING');
}

test('every settlement continues from its row and settles once after a restore with an empty Temporal', async ({
  folder,
  program,
  original,
  restore,
}) => {
  const partner = await original.stack.api.createCaller();
  const { settled, unpaid, held, sent, accepted, verificationId, certificate } = await fillOriginal(
    original.stack,
    partner,
  );

  const copy = path.join(folder, 'restored');
  const files = { from: original.directory, to: copy, account: program.account };
  let during: Accepted | undefined;
  await backUp(original.cluster.serverUrl, files, async () => {
    during = await partnerOn(original.stack, partner).settle();
    // The restored service dispatches the rows of its outbox itself. Only dispatched rows need the operator.
    await expect.poll(() => countOutbox(original.stack)).toBe(0);
  });
  const late = await partnerOn(original.stack, partner).settle();
  await original.close();

  const stack = await restore(copy);
  const requests = partnerOn(stack, partner);
  if (!during) expect.fail('nothing was accepted during the backup');
  const open = [unpaid, held, sent, accepted, during];
  const { ops, printed } = operatorOf(stack);
  expect(await ops('waiting')).toBe(0);
  for (const { settlementId } of open) expect(printed.filter((line) => line.includes(settlementId))).toHaveLength(1);
  expect(
    await ops('redispatch', '--all', '--operator', 'ana', '--note', 'restored from the backup of eight', '--yes'),
  ).toBe(0);
  expect(printed).toContain(`settlements: ${open.length} will be started or signalled.`);
  expect(printed).toContain('verifications: 1 will be started or signalled.');

  await requests.untilStatus(unpaid, 'awaiting_funds');
  await requests.sendEvent(unpaid, 'collection_succeeded');
  await requests.sendEvent(sent, 'payout_confirmed');
  expect((await complete(stack.api, partner, verificationId, { status: 'verified' })).statusCode).toBe(200);
  const statuses = () => Promise.all(open.map(requests.statusOf));
  await expect.poll(statuses).toEqual(open.map(() => 'settled'));

  const once = { status: 'settled', certificates: 1, settled: 1, due: 0, exceptions: 0 };
  expect(await listResults(stack)).toEqual([{ ...once, audited: 0 }, ...open.map(() => ({ ...once, audited: 1 }))]);
  await expectSameAnswers(stack, partner, [settled, ...open]);
  expect(await requests.certificateOf(settled)).toEqual(certificate);
  // It was accepted after the backup, so the restored service does not know it.
  expect((await stack.api.call(partner, 'GET', `/v2/settle/${late.settlementId}`)).statusCode).toBe(404);
  await expectWorkflows(stack, [settlementWorkflowId(held.settlementId), verificationWorkflowId(verificationId)]);

  printed.length = 0;
  expect(await ops('redispatch', '--all', '--operator', 'ana', '--note', 'once more', '--yes')).toBe(0);
  expect(printed[0]).toBe('settlements: 0 will be started or signalled.');
});
