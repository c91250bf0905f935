/** The gates before every step that moves value (contract §14): a closed gate decides, an unreadable store decides nothing. */
import { ApplicationFailure } from '@temporalio/common';
import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Activities, createActivities } from '../../activities/index.ts';
import { recordGateEvidence, revokeGateEvidence } from '../../db/commands/gate.ts';
import { lockEvidenceTarget, recordEvidence } from '../../db/queries/evidence.ts';
import { outbox, postings, settlements } from '../../db/schema/index.ts';
import type { CorridorId } from '../../domain/corridor.ts';
import { GATES } from '../../domain/gate.ts';
import { environmentName, type RuntimeEnvironment } from '../../domain/runtime.ts';
import { activityDeps } from '../support/activity.ts';
import { type Caller, createTestApi, type TestApi } from '../support/api.ts';
import { digestTables, untilBlocked } from '../support/database.ts';
import { insertGateEvidence, withoutGateStore } from '../support/gate.ts';
import { createRecipient, jsonOf, settleBody } from '../support/partner.ts';
import { enterStates } from '../support/settlement.ts';

const REMOTE: readonly RuntimeEnvironment[] = ['remote-sandbox', 'production'];
const NOBODY_LISTENS = 'http://127.0.0.1:1';

let api: TestApi;
let caller: Caller;

beforeAll(async () => {
  api = await createTestApi();
  caller = await api.createCaller();
});
afterAll(() => api.close());

const worker = (runtime: RuntimeEnvironment = 'local-sandbox'): Activities =>
  createActivities({ ...activityDeps(api, NOBODY_LISTENS, { nudge: () => undefined }), runtime });
const step = (settlementId: string) => ({ settlementId, orgId: caller.orgId, nowMs: Date.now() });

/** Bound to its corridor, so that the evidence of one test says nothing about another's. */
async function accept(
  corridor: CorridorId,
  country: string,
  environment = environmentName('local-sandbox'),
): Promise<string> {
  const body = settleBody(await createRecipient({ api }, caller, { country }), { corridor });
  const answer = await api.call(caller, 'POST', '/v2/settle', body, { 'idempotency-key': crypto.randomUUID() });
  const { settlement_id: settlementId } = jsonOf(answer);
  await api.connection.db.update(settlements).set({ environment }).where(eq(settlements.settlementId, settlementId));
  return settlementId;
}

async function fund(settlementId: string): Promise<void> {
  await worker().admitSettlement(step(settlementId));
  await api.connection.db.transaction(async (tx) => {
    const settlement = (await lockEvidenceTarget(tx, settlementId)) ?? expect.fail('no settlement');
    const claim = {
      provider: 'cardproc',
      kind: 'collection_succeeded',
      amountMinor: 25_000n,
      currency: 'USD',
      failure: null,
    } as const;
    await recordEvidence(
      tx,
      settlement,
      { ...claim, settlementId, eventId: crypto.randomUUID(), sha256: Buffer.alloc(32) },
      { at: new Date(), requestId: 'test' },
    );
  });
  expect(await worker().reviewFunding(step(settlementId))).toMatchObject({ status: 'funded' });
}

const balancesOf = async (settlementId: string): Promise<Record<string, bigint>> => {
  const rows = await api.connection.db
    .select({ account: postings.account, balance: sql<string>`sum(${postings.amountMinor})` })
    .from(postings)
    .where(eq(postings.settlementId, settlementId))
    .groupBy(postings.account);
  return Object.fromEntries(rows.map(({ account, balance }) => [account, BigInt(balance)]));
};

const failureOf = async (run: Promise<unknown>): Promise<ApplicationFailure> => {
  const error = await run.catch((thrown: unknown) => thrown);
  return error instanceof ApplicationFailure ? error : expect.fail('the step did not fail');
};

/** The step fails in this way and leaves every table as it was. */
async function movesNothing(
  run: () => Promise<unknown>,
  failure: { type: string; nonRetryable: boolean },
): Promise<void> {
  const before = await digestTables(api.connection.pool);
  const { type, nonRetryable } = await failureOf(run());
  expect({ type, nonRetryable }).toEqual(failure);
  expect(await digestTables(api.connection.pool)).toEqual(before);
}

/** A closed gate decides: the settlement is rejected before anything is collected, and no provider is asked. */
async function isRejected(activities: ReturnType<typeof worker>, settlementId: string): Promise<void> {
  const { db } = api.connection;
  await db.delete(outbox);
  expect(await activities.admitSettlement(step(settlementId))).toMatchObject({
    status: 'rejected',
    failureCode: 'launch_gates_closed',
  });
  expect(await balancesOf(settlementId)).toEqual({});
  expect(await db.select().from(outbox)).toEqual([]);
}

describe.each(REMOTE)('a worker of %s', (runtime) => {
  test('collects nothing and starts no simulated provider, for want of evidence', async () => {
    const settlementId = await accept('US-JM', 'JM', environmentName(runtime));
    await isRejected(worker(runtime), settlementId);
  });

  test('collects nothing with every gate proven: there is no live adapter', async () => {
    await insertGateEvidence(api.connection.db, environmentName(runtime));
    const settlementId = await accept('US-JM', 'JM', environmentName(runtime));
    await isRejected(worker(runtime), settlementId);
  });

  test("collects for none of the local sandbox's settlements, and pays none of them out by its simulated rail", async () => {
    const accepted = await accept('US-JM', 'JM');
    await isRejected(worker(runtime), accepted);
    const sent = await accept('US-JM', 'JM');
    await fund(sent);
    const { db } = api.connection;
    await db.update(settlements).set({ status: 'paying_out' }).where(eq(settlements.settlementId, sent));
    const ended = await worker(runtime).sendPayout(step(sent));
    expect(ended).toMatchObject({ status: 'failed', failureCode: 'launch_gates_closed' });
  });

  test('plays no provider, whoever asks', async () => {
    const settlementId = await accept('US-JM', 'JM', environmentName(runtime));
    const input = { settlementId, orgId: caller.orgId };
    const refused = { type: 'local_sandbox_only', nonRetryable: true };
    await movesNothing(() => worker(runtime).planCollection(input), refused);
    await movesNothing(() => worker(runtime).postCollectionEvent({ ...input, step: 0 }), refused);
  });
});

describe('a gate that is closed before the payout', () => {
  test.each([
    ['revoked', 'US-TT', { changes: { revokedAt: new Date(), revokedBy: 'ana' } }],
    [
      'expired',
      'US-BB',
      { changes: { recordedAt: new Date(Date.now() - 2_000), expiresAt: new Date(Date.now() - 1_000) } },
    ],
    ['approved by one alone', 'US-BS', { operators: ['ana'] }],
    ['recorded by a clock that ran ahead', 'US-DO', { changes: { recordedAt: new Date(Date.now() + 3_600_000) } }],
  ] as const)(
    'because it is %s: the settlement fails and everything held is due back',
    async (_why, corridor, options) => {
      const settlementId = await accept(corridor, corridor.slice(3));
      await fund(settlementId);
      await insertGateEvidence(api.connection.db, 'local sandbox', {
        gates: ['rail_admission'],
        corridors: [corridor],
        ...options,
      });
      expect(await worker().sendPayout(step(settlementId))).toMatchObject({
        status: 'failed',
        failureCode: 'launch_gates_closed',
      });
      expect(await balancesOf(settlementId)).toEqual({
        card_clearing: 25_000n,
        settlement_funds: 0n,
        refund_due: -25_000n,
      });
      expect(await worker().sendPayout(step(settlementId))).toMatchObject({ status: 'failed' });
      expect(await balancesOf(settlementId)).toMatchObject({ refund_due: -25_000n });
    },
  );

  test('is read again before a retried call to the rail: the settlement fails and nothing is paid', async () => {
    const settlementId = await accept('US-KY', 'KY');
    await fund(settlementId);
    // As if the worker had died after paying_out was committed.
    await enterStates(api, caller, settlementId, ['paying_out']);
    await insertGateEvidence(api.connection.db, 'local sandbox', {
      gates: ['rail_admission'],
      corridors: ['US-KY'],
      operators: ['ana'],
    });
    expect(await worker().sendPayout(step(settlementId))).toMatchObject({
      status: 'failed',
      failureCode: 'launch_gates_closed',
    });
    expect(await balancesOf(settlementId)).toMatchObject({ payout_in_transit: 0n, refund_due: -25_000n });
  });

  test('in another corridor or environment does not concern it', async () => {
    const settlementId = await accept('US-LC', 'LC');
    await fund(settlementId);
    const revoked = { revokedAt: new Date(), revokedBy: 'ana' };
    await insertGateEvidence(api.connection.db, 'local sandbox', { corridors: ['US-KY'], changes: revoked });
    await insertGateEvidence(api.connection.db, 'production', { corridors: ['US-LC'], changes: revoked });
    expect(await worker().sendPayout(step(settlementId))).toMatchObject({ status: 'settled' });
  });
});

describe('closing a gate in the same instant as a step', () => {
  const act = { operator: 'ana', note: 'it does not hold any more' };
  const revoke = (evidenceId: string) => revokeGateEvidence(api.deps, evidenceId, act);
  const replace = () =>
    recordGateEvidence(
      { ...api.deps, now: () => new Date(Date.now() - 1_000) },
      {
        gate: 'operator_approval',
        corridor: 'US-JM',
        reference: 'newer.pdf',
        sha256: Buffer.alloc(32),
        operator: act.operator,
        expiresAt: new Date(Date.now() + 86_400_000),
      },
    );

  async function openGate(corridor: CorridorId): Promise<string> {
    const earlier = { recordedAt: new Date(Date.now() - 2 * 86_400_000) };
    const [evidenceId = ''] = await insertGateEvidence(api.connection.db, 'local sandbox', {
      gates: ['operator_approval'],
      corridors: [corridor],
      changes: earlier,
    });
    return evidenceId;
  }
  const acceptByPhone = async (): Promise<string> => {
    const mobile_details = { provider: 'MonCash', phone_number: '+50934101234' };
    const body = settleBody(
      await createRecipient({ api }, caller, { country: 'HT', bank_details: undefined, mobile_details }),
      {
        corridor: 'US-HT',
        payout_rail: 'mobile_money',
      },
    );
    return jsonOf(await api.call(caller, 'POST', '/v2/settle', body, { 'idempotency-key': crypto.randomUUID() }))
      .settlement_id;
  };

  test.each([
    ['a revocation', 'US-LC', revoke],
    ['newer evidence that nobody has approved', 'US-JM', replace],
  ] as const)('%s that is under way is waited for by a step, and refuses it', async (_what, corridor, close) => {
    const evidenceId = await openGate(corridor);
    const settlementId = await accept(corridor, corridor.slice(3));
    await fund(settlementId);
    const holder = await api.connection.pool.connect();
    try {
      // The gate is closed and not yet committed: its audit entry waits for this lock.
      await holder.query('BEGIN');
      await holder.query('LOCK TABLE audit_entries IN SHARE MODE');
      const closed = close(evidenceId);
      await untilBlocked(api.connection.pool, 1);
      const sent = worker().sendPayout(step(settlementId));
      await untilBlocked(api.connection.pool, 2);
      await holder.query('COMMIT');
      await closed;
      expect(await sent).toMatchObject({ status: 'failed', failureCode: 'launch_gates_closed' });
    } finally {
      holder.release();
    }
  });

  test('a revocation waits for the step that has read the gate, and closes it to the next', async () => {
    const evidenceId = await openGate('US-HT');
    const [settlementId, next] = [await acceptByPhone(), await acceptByPhone()];
    await fund(settlementId);
    await fund(next);
    const holder = await api.connection.pool.connect();
    const order: string[] = [];
    try {
      // The step has read its gates when it writes its transition, and gets no further.
      await holder.query('BEGIN');
      await holder.query('LOCK TABLE settlement_transitions IN SHARE MODE');
      const sent = worker()
        .sendPayout(step(settlementId))
        .then(({ status }) => order.push(status));
      await untilBlocked(api.connection.pool, 1);
      const revoked = revoke(evidenceId).then(() => order.push('revoked'));
      await untilBlocked(api.connection.pool, 2);
      await holder.query('COMMIT');
      await Promise.all([sent, revoked]);
    } finally {
      holder.release(true);
    }
    expect(new Set(order)).toEqual(new Set(['settled', 'revoked']));
    expect(await worker().sendPayout(step(next))).toMatchObject({
      status: 'failed',
      failureCode: 'launch_gates_closed',
    });
  });
});

describe('a store that cannot be read', () => {
  test('before the collection: nothing moves, and the step is tried again', async () => {
    const settlementId = await accept('US-GY', 'GY');
    await withoutGateStore(api.connection.db, () =>
      movesNothing(() => worker().admitSettlement(step(settlementId)), {
        type: 'dependency:unknown',
        nonRetryable: false,
      }),
    );
    expect(await worker().admitSettlement(step(settlementId))).toMatchObject({ status: 'awaiting_funds' });
  });

  test('before the payout: nothing moves, and the step is tried again until it can be read', async () => {
    const settlementId = await accept('US-GY', 'GY');
    await fund(settlementId);
    await withoutGateStore(api.connection.db, () =>
      movesNothing(() => worker().sendPayout(step(settlementId)), { type: 'dependency:unknown', nonRetryable: false }),
    );
    expect(await worker().sendPayout(step(settlementId))).toMatchObject({ status: 'settled' });
  });
});

test('a step is judged by real time: evidence that expired while it was tried again closes its gate', async () => {
  const settlementId = await accept('US-BZ', 'BZ');
  await fund(settlementId);
  const hour = 3_600_000;
  const times = { recordedAt: new Date(Date.now() - 2 * hour), expiresAt: new Date(Date.now() - hour) };
  await insertGateEvidence(api.connection.db, 'local sandbox', {
    gates: ['operator_approval'],
    corridors: ['US-BZ'],
    changes: times,
  });
  const firstTried = times.expiresAt.getTime() - 1;
  expect(await worker().sendPayout({ ...step(settlementId), nowMs: firstTried })).toMatchObject({
    failureCode: 'launch_gates_closed',
  });
});

test.each(GATES)(
  '%s alone, closed before the collection, rejects; newer evidence opens it for the next settlement',
  async (gate) => {
    const { db } = api.connection;
    const older = { recordedAt: new Date(Date.now() - 2 * 86_400_000) };
    const refused = await accept('GB-BB', 'BB');
    await insertGateEvidence(db, 'local sandbox', {
      gates: [gate],
      corridors: ['GB-BB'],
      operators: [],
      changes: older,
    });
    await isRejected(worker(), refused);
    await insertGateEvidence(db, 'local sandbox', { gates: [gate], corridors: ['GB-BB'] });
    const next = await accept('GB-BB', 'BB');
    expect(await worker().admitSettlement(step(next))).toMatchObject({ status: 'awaiting_funds' });
  },
);
