/**
 * The launch gates before every step that moves value (contract §14): a closed gate decides, and when the gates cannot
 * be read, nothing is decided.
 */
import { ApplicationFailure } from '@temporalio/common';
import { eq, sql } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { type Activities, createActivities } from '../../activities/index.ts';
import { recordGateEvidence, revokeGateEvidence } from '../../db/commands/gate.ts';
import { outbox, postings, settlements } from '../../db/schema/index.ts';
import type { CorridorId } from '../../domain/corridor.ts';
import type { EnvironmentName, RuntimeEnvironment } from '../../domain/runtime.ts';
import { activityDeps } from '../support/activity.ts';
import { cardprocBody, sendCardproc } from '../support/cardproc.ts';
import { untilBlocked } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { insertGateEvidence, withoutGateStore } from '../support/gate.ts';
import { settle } from '../support/partner.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { enterStates } from '../support/settlement.ts';

const ACT = { operator: 'ana', note: 'it does not hold any more' };
const DAY_MS = 86_400_000;

const failureOf = async (run: Promise<unknown>): Promise<ApplicationFailure> => {
  const error = await run.catch((thrown: unknown) => thrown);
  return error instanceof ApplicationFailure ? error : expect.fail('the activity did not fail');
};

const test = withApi().extend('world', FILE, ({ api, partner, steps: { step } }) => {
  const { db, pool } = api.connection;
  const activities = (runtime: RuntimeEnvironment = 'local-sandbox'): Activities =>
    createActivities({ ...activityDeps(api), runtime });
  const insertEvidence = (options: Parameters<typeof insertGateEvidence>[2]) =>
    insertGateEvidence(db, 'local sandbox', options);
  const balancesOf = async (settlementId: string): Promise<Record<string, bigint>> => {
    const rows = await db
      .select({ account: postings.account, balance: sql<string>`sum(${postings.amountMinor})` })
      .from(postings)
      .where(eq(postings.settlementId, settlementId))
      .groupBy(postings.account);
    return Object.fromEntries(rows.map(({ account, balance }) => [account, BigInt(balance)]));
  };
  return {
    activities,
    insertEvidence,
    balancesOf,
    /** Each test uses a corridor of its own, so that its evidence does not concern another test. */
    accept: async (
      corridor: CorridorId,
      country: string,
      environment: EnvironmentName = 'local sandbox',
    ): Promise<string> => {
      const id = await settle(api, partner, { corridor }, { country });
      await api.owner.db.update(settlements).set({ environment }).where(eq(settlements.settlementId, id));
      return id;
    },
    /** A settlement to Haiti, which is paid out by mobile money. */
    acceptByPhone: (): Promise<string> => {
      const mobile_details = { provider: 'MonCash', phone_number: '+50934101234' };
      const recipient = { country: 'HT', bank_details: undefined, mobile_details };
      return settle(api, partner, { corridor: 'US-HT', payout_rail: 'mobile_money' }, recipient);
    },
    fund: async (settlementId: string): Promise<void> => {
      await activities().admitSettlement(step(settlementId));
      await sendCardproc(api, cardprocBody(settlementId));
      expect(await activities().reviewSettlement(step(settlementId))).toMatchObject({ status: 'funded' });
    },
    /** The activity fails in this way and leaves every table as it was. */
    movesNothing: async (
      run: () => Promise<unknown>,
      failure: { type: string; nonRetryable: boolean },
    ): Promise<void> => {
      await expectUnchanged(pool, async () => {
        const { type, nonRetryable } = await failureOf(run());
        expect({ type, nonRetryable }).toEqual(failure);
      });
    },
    /** The settlement is rejected: nothing is collected, and no provider is started. */
    isRejected: async (worker: Activities, settlementId: string): Promise<void> => {
      await db.delete(outbox);
      expect(await worker.admitSettlement(step(settlementId))).toMatchObject({
        status: 'rejected',
        failureCode: 'launch_gates_closed',
      });
      expect(await balancesOf(settlementId)).toEqual({});
      expect(await db.select().from(outbox)).toEqual([]);
    },
    /** The id of evidence that opens a gate. */
    openGate: async (corridor: CorridorId): Promise<string> => {
      const [evidenceId = ''] = await insertEvidence({
        gates: ['operator_approval'],
        corridors: [corridor],
        changes: { recordedAt: new Date(Date.now() - 2 * DAY_MS) },
      });
      return evidenceId;
    },
    revoke: (evidenceId: string) => revokeGateEvidence(api.deps, evidenceId, ACT),
    /** Records newer evidence without an approval, which closes the gate. */
    replace: (_evidenceId: string, corridor: CorridorId = 'US-JM') =>
      recordGateEvidence(
        { ...api.deps, now: () => new Date(Date.now() - 1_000) },
        {
          gate: 'operator_approval',
          corridor,
          reference: 'newer.pdf',
          sha256: Buffer.alloc(32),
          operator: ACT.operator,
          expiresAt: new Date(Date.now() + DAY_MS),
        },
      ),
  };
});

describe('a worker of a remote runtime', () => {
  const runtime = 'production';

  test('collects nothing and starts no simulated provider, even with every gate proven', async ({ world, api }) => {
    await insertGateEvidence(api.connection.db, runtime);
    const settlementId = await world.accept('US-JM', 'JM', runtime);
    await world.isRejected(world.activities(runtime), settlementId);
  });

  test('neither collects for a settlement of the local sandbox nor pays it out by the simulated rail', async ({
    world,
    api,
    partner,
    steps,
  }) => {
    const accepted = await world.accept('US-JM', 'JM');
    await world.isRejected(world.activities(runtime), accepted);
    const sent = await world.accept('US-JM', 'JM');
    await world.fund(sent);
    await enterStates(api, partner, sent, ['paying_out']);
    const funded = await world.accept('US-JM', 'JM');
    await world.fund(funded);
    const payout = (id: string) => world.activities(runtime).sendPayout(steps.step(id));
    expect(await payout(funded)).toMatchObject({ status: 'failed', failureCode: 'launch_gates_closed' });
    // The rail may have it already: unknown is not failed.
    expect(await payout(sent)).toMatchObject({ status: 'paying_out', failureCode: null });
  });

  test('refuses to play a provider', async ({ world, partner }) => {
    const settlementId = await world.accept('US-JM', 'JM', runtime);
    const input = { settlementId, orgId: partner.orgId };
    const refused = { type: 'local_sandbox_only', nonRetryable: true };
    await world.movesNothing(() => world.activities(runtime).planCollection(input), refused);
    await world.movesNothing(() => world.activities(runtime).postCollectionEvent({ ...input, step: 0 }), refused);
  });
});

test('a worker of the local sandbox simulates nothing for a settlement of another environment', async ({ world }) => {
  for (const environment of ['remote sandbox', 'production'] as const)
    await world.isRejected(world.activities(), await world.accept('US-JM', 'JM', environment));
});

describe('a gate that is closed before the payout', () => {
  test('fails the settlement, and all collected money is due back', async ({ world, steps }) => {
    const settlementId = await world.accept('US-BS', 'BS');
    await world.fund(settlementId);
    await world.insertEvidence({ gates: ['rail_admission'], corridors: ['US-BS'], operators: ['ana'] });
    expect(await world.activities().sendPayout(steps.step(settlementId))).toMatchObject({
      status: 'failed',
      failureCode: 'launch_gates_closed',
    });
    expect(await world.balancesOf(settlementId)).toEqual({
      card_clearing: 25_000n,
      settlement_funds: 0n,
      refund_due: -25_000n,
    });
    expect(await world.activities().sendPayout(steps.step(settlementId))).toMatchObject({ status: 'failed' });
    expect(await world.balancesOf(settlementId)).toMatchObject({ refund_due: -25_000n });
  });
});

describe('a gate that is closed while an activity runs', () => {
  test.for([
    ['a revocation is waited for by the activity, which then forgives', 'US-LC', 'revoke', { status: 'settled' }],
    [
      'newer evidence without an approval is waited for by the activity, which then refuses',
      'US-JM',
      'replace',
      { status: 'failed', failureCode: 'launch_gates_closed' },
    ],
  ] as const)('%s the payout', async ([_what, corridor, close, ended], { world, api, steps }) => {
    const evidenceId = await world.openGate(corridor);
    const settlementId = await world.accept(corridor, corridor.slice(3));
    await world.fund(settlementId);
    const holder = await api.owner.pool.connect();
    try {
      // The gate is closed and not yet committed: its audit entry waits for this lock.
      await holder.query('BEGIN');
      await holder.query('LOCK TABLE audit_entries IN SHARE MODE');
      const closed = world[close](evidenceId);
      await untilBlocked(api.connection.pool, 1);
      const sent = world.activities().sendPayout(steps.step(settlementId));
      await untilBlocked(api.connection.pool, 2);
      await holder.query('COMMIT');
      await closed;
      expect(await sent).toMatchObject(ended);
    } finally {
      // Closed, not reused: after a failure the transaction is still open.
      holder.release(true);
    }
  });

  test('newer evidence waits for the activity that has read the gate, and refuses the next one', async ({
    world,
    api,
    steps,
  }) => {
    const evidenceId = await world.openGate('US-HT');
    const [settlementId, next] = [await world.acceptByPhone(), await world.acceptByPhone()];
    await world.fund(settlementId);
    await world.fund(next);
    const holder = await api.owner.pool.connect();
    const order: string[] = [];
    try {
      // The activity has read the gates when it writes its transition, which waits for this lock.
      await holder.query('BEGIN');
      await holder.query('LOCK TABLE settlement_transitions IN SHARE MODE');
      const sent = world
        .activities()
        .sendPayout(steps.step(settlementId))
        .then(({ status }) => order.push(status));
      await untilBlocked(api.connection.pool, 1);
      const replaced = world.replace(evidenceId, 'US-HT').then(() => order.push('replaced'));
      await untilBlocked(api.connection.pool, 2);
      await holder.query('COMMIT');
      await Promise.all([sent, replaced]);
    } finally {
      holder.release(true);
    }
    expect(new Set(order)).toEqual(new Set(['settled', 'replaced']));
    expect(await world.activities().sendPayout(steps.step(next))).toMatchObject({
      status: 'failed',
      failureCode: 'launch_gates_closed',
    });
  });
});

test('gates that cannot be read stop the collection and the payout: nothing moves, until they can be read', async ({
  world,
  api,
  steps,
}) => {
  const [accepted, funded] = [await world.accept('US-GY', 'GY'), await world.accept('US-GY', 'GY')];
  await world.fund(funded);
  const { admitSettlement, sendPayout } = world.activities();
  const collect = () => admitSettlement(steps.step(accepted));
  const pay = () => sendPayout(steps.step(funded));
  await withoutGateStore(api.owner.pool, async () => {
    for (const run of [collect, pay]) await world.movesNothing(run, { type: 'dependency:42P01', nonRetryable: false });
  });
  expect([await collect(), await pay()]).toMatchObject([{ status: 'awaiting_funds' }, { status: 'settled' }]);
});

test('gates are judged by real time: evidence that expires during retries closes its gate', async ({
  world,
  steps,
}) => {
  const settlementId = await world.accept('US-BZ', 'BZ');
  await world.fund(settlementId);
  const hour = 3_600_000;
  const times = { recordedAt: new Date(Date.now() - 2 * hour), expiresAt: new Date(Date.now() - hour) };
  await world.insertEvidence({ gates: ['operator_approval'], corridors: ['US-BZ'], changes: times });
  const firstTriedMs = times.expiresAt.getTime() - 1;
  expect(await world.activities().sendPayout({ ...steps.step(settlementId), nowMs: firstTriedMs })).toMatchObject({
    failureCode: 'launch_gates_closed',
  });
});

test("evidence that has expired by the database's clock closes its gate for a worker whose clock is behind", async ({
  api,
  world,
  steps,
}) => {
  const hour = 3_600_000;
  const settlementId = await world.accept('US-KY', 'KY');
  const times = { recordedAt: new Date(Date.now() - 3 * hour), expiresAt: new Date(Date.now() - hour) };
  await world.insertEvidence({ gates: ['operator_approval'], corridors: ['US-KY'], changes: times });
  const behind = createActivities({ ...activityDeps(api), now: () => new Date(Date.now() - 2 * hour) });
  expect(await behind.admitSettlement(steps.step(settlementId))).toMatchObject({
    status: 'rejected',
    failureCode: 'launch_gates_closed',
  });
});

test('one closed gate rejects; newer evidence opens it for the next settlement', async ({ world, steps }) => {
  const older = { recordedAt: new Date(Date.now() - 2 * DAY_MS) };
  const refused = await world.accept('GB-BB', 'BB');
  await world.insertEvidence({ gates: ['compliance_program'], corridors: ['GB-BB'], operators: [], changes: older });
  await world.isRejected(world.activities(), refused);
  await world.insertEvidence({ gates: ['compliance_program'], corridors: ['GB-BB'] });
  const next = await world.accept('GB-BB', 'BB');
  expect(await world.activities().admitSettlement(steps.step(next))).toMatchObject({ status: 'awaiting_funds' });
});
