/**
 * The database restored to an earlier moment while Temporal was not, and the reverse. `ops reconcile` says what differs
 * and what to do; then every settlement settles, and the rail has paid each once.
 */
import { rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { test as base, expect } from 'vitest';
import { payoutAnswer } from '../../activities/providers/payout-rail.ts';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { createRuns, listRuns } from '../../process/runs.ts';
import { TASK_QUEUE } from '../../workflows/contract.ts';
import type { Caller } from '../support/api.ts';
import { createOps } from '../support/ops.ts';
import { createRecipient, jsonOf, settleBody, untilStatus } from '../support/partner.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { BY_MANUAL_CARD } from '../support/settlement.ts';
import { startStack, type TestStack } from '../support/stack.ts';

const FILE = path.join(os.tmpdir(), `payouts-${process.pid}.csv`);
/** A sweep leaves what has changed within 15 s to the dispatcher. */
const SETTLED_DOWN_MS = 16_000;

/** A rail that pays each settlement once, however often it is asked. */
const asked: string[] = [];
const rail = {
  send: async ({ settlementId }: { readonly settlementId: string }) => {
    asked.push(settlementId);
    return payoutAnswer(settlementId, 'payout_confirmed');
  },
};
/** As the rail writes it: what it has paid since the backup. @returns when */
function writePayouts(): number {
  writeFileSync(FILE, `settlement_id,outcome\n${[...new Set(asked)].map((id) => `${id},paid\n`).join('')}`);
  return Date.now();
}

const open = ({ databaseUrl, migrationUrl }: TestDatabase, namespace?: string, worker = true): Promise<TestStack> =>
  startStack({
    namespace,
    worker,
    activities: { payoutRail: rail },
    api: { database: { databaseUrl, migrationUrl, drop: async () => undefined } },
  });

function partnerOn({ api }: TestStack, caller: Caller, recipientId: string) {
  return {
    settle: async (key: string): Promise<string> => {
      const body = settleBody(recipientId, BY_MANUAL_CARD);
      const answer = await api.call(caller, 'POST', '/v2/settle', body, { 'idempotency-key': `settlement-key-${key}` });
      expect(answer.statusCode, answer.body).toBe(202);
      return jsonOf(answer).settlement_id;
    },
    pay: async (id: string): Promise<void> => {
      await untilStatus(api, caller, id, 'awaiting_funds');
      const event = { event: 'collection_succeeded' };
      await api.call(caller, 'POST', `/v2/test-helpers/settlements/${id}/events`, event);
      await untilStatus(api, caller, id, 'settled');
    },
  };
}

function operatorOn({ api, temporal }: TestStack, backedUpAt: number) {
  const now = () => Date.now() + SETTLED_DOWN_MS;
  const ops = createOps(api.connection.db, {
    client: () => temporal,
    runs: createRuns(temporal),
    listRuns: (since) => listRuns(temporal, since),
    now: () => new Date(now()),
  });
  const differences = async (writtenAt: number): Promise<Record<string, string[]>> => {
    const since = `${Math.floor((now() - backedUpAt) / 1_000)}s`;
    const until = `${Math.ceil((now() - writtenAt) / 1_000)}s`;
    const { exitCode, printed } = await ops(
      ...['reconcile', '--rail', FILE, '--since', since, '--until', until, '--json'],
    );
    const found = Object.entries<string[]>(JSON.parse(printed.join(''))).filter(([, ids]) => ids.length > 0);
    expect(exitCode).toBe(found.length === 0 ? 0 : 1);
    return Object.fromEntries(found.map(([name, ids]) => [name, ids.toSorted()]));
  };
  const act = ['--operator', 'ana', '--note', 'restored', '--yes'];
  return { ops, differences, redispatchAll: () => ops('redispatch', '--all', ...act) };
}

/**
 * At the backup `old` had settled, and `early` waited; since then `early` and `lost` have settled, and `late` was
 * accepted.
 */
const test = base
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  .extend('world', { scope: 'file' }, async ({}, { onCleanup }) => {
    const databases: TestDatabase[] = [];
    onCleanup(async () => {
      rmSync(FILE, { force: true });
      for (const { drop } of databases) await drop();
    });
    const database = await createTestDatabase();
    databases.push(database);
    const before = await open(database);
    const caller = await before.api.createCaller();
    const recipientId = await createRecipient(before.api, caller);
    const old = await partnerOn(before, caller, recipientId).settle('old');
    await partnerOn(before, caller, recipientId).pay(old);
    const early = await partnerOn(before, caller, recipientId).settle('early');
    await untilStatus(before.api, caller, early, 'awaiting_funds');
    await before.close();
    const backedUpAt = Date.now();
    asked.length = 0;
    const backup = await createTestDatabase(database);
    databases.push(backup);
    const since = await open(database, before.namespace);
    const partner = partnerOn(since, caller, recipientId);
    const [lost, late] = [await partner.settle('lost'), await partner.settle('late')];
    await partner.pay(early);
    await partner.pay(lost);
    await untilStatus(since.api, caller, late, 'awaiting_funds');
    // Otherwise they could end after the restore, and take what is sent again for their own. The sweep would find that.
    for (const id of [early, lost]) await since.temporal.workflow.getHandle(settlementWorkflowId(id)).result();
    await since.close();
    // The command takes whole seconds: the time between the backup and the file must have one.
    await delay(backedUpAt + 2_000 - Date.now());
    return { database, backup, backedUpAt, caller, recipientId, early, lost, late, namespace: before.namespace };
  });
test.beforeAll(({ world: _ }) => undefined);

test('the database was restored: a lost settlement that is sent again has the same id, and is paid once', async ({
  world,
}) => {
  const { backup, backedUpAt, namespace, caller, recipientId, early, lost, late } = world;
  const stack = await open(backup, namespace);
  try {
    const { differences, redispatchAll } = operatorOn(stack, backedUpAt);
    const writtenAt = writePayouts();
    await expect
      .poll(() => differences(writtenAt))
      .toEqual({
        runs_without_row: [lost, late].toSorted(),
        rows_without_run: [early],
        payouts_without_settlement: [lost],
        payouts_of_open_settlements: [early],
      });
    const partner = partnerOn(stack, caller, recipientId);
    expect([await partner.settle('lost'), await partner.settle('late')]).toEqual([lost, late]);
    expect((await redispatchAll()).exitCode).toBe(0);
    for (const id of [early, lost, late]) await partner.pay(id);
    expect(new Set(asked)).toEqual(new Set([early, lost, late]));
    await expect.poll(() => differences(writtenAt)).toEqual({});
    const anew = writePayouts();
    await expect.poll(() => differences(anew)).toEqual({});
  } finally {
    await stack.close();
  }
});

test('Temporal was restored: what is open gets a run, a run of what has ended ends, and nothing is paid again', async ({
  world,
}) => {
  const { database, backedUpAt, caller, recipientId, early, late } = world;
  const paid = asked.length;
  const stack = await open(database, undefined, false);
  try {
    const run = { workflowId: settlementWorkflowId(early), taskQueue: TASK_QUEUE };
    const args = [{ settlementId: early, orgId: caller.orgId }] as const;
    const stale = await stack.temporal.workflow.start('settlement', { ...run, args: [...args] });
    const { differences, redispatchAll } = operatorOn(stack, backedUpAt);
    const writtenAt = writePayouts();
    const restored = { rows_without_run: [late], runs_of_ended_rows: [early], payouts_of_open_settlements: [late] };
    await expect.poll(() => differences(writtenAt)).toEqual(restored);
    await redispatchAll();
    await stack.startWorker();
    expect(await stale.result()).toEqual({ status: 'settled', failure: null });
    await partnerOn(stack, caller, recipientId).pay(late);
    expect(asked.slice(paid)).toEqual([late]);
    const anew = writePayouts();
    await expect.poll(() => differences(anew)).toEqual({});
  } finally {
    await stack.close();
  }
});

test('reconcile refuses a file of payouts that it cannot read, and names the line', async ({ world }) => {
  const stack = await open(world.database, world.namespace, false);
  try {
    for (const [content, fault] of [
      ['id,outcome\n', 'settlement_id and outcome'],
      ['settlement_id,outcome\n\nstl_1,paid\n', 'line 3 '],
      [`settlement_id,outcome\nstl_${'a'.repeat(32)},lost\n`, 'line 2: the outcome'],
    ] as const) {
      writeFileSync(FILE, content);
      const { exitCode, warned } = await operatorOn(stack, world.backedUpAt).ops('reconcile', '--rail', FILE);
      expect([exitCode, warned.join(' ')]).toEqual([1, expect.stringContaining(fault)]);
    }
    expect((await operatorOn(stack, world.backedUpAt).ops('reconcile', '--rail', 'none.csv')).exitCode).toBe(1);
  } finally {
    await stack.close();
  }
});
