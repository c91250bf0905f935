/** `waiting` and `stuck`: what operators see of a service that makes no progress. */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { expect } from 'vitest';
import { connect } from '../../db/client.ts';
import { temporalFault } from '../../domain/temporal-health.ts';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { cardprocBody, sendCardproc } from '../support/cardproc.ts';
import { raceBehind } from '../support/database.ts';
import { FILE, type TestClock, withApi } from '../support/fixture.ts';
import { createOps, type OpsResult, temporalSilence } from '../support/ops.ts';
import { createRecipient } from '../support/partner.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { createSteps, IN_REVIEW, openSettlement } from '../support/settlement.ts';
import { recordStatements } from '../support/statement-count.ts';

const HOUR_MS = 3_600_000;

/** The workflows that Temporal says have no run. */
const lost = new Set<string>();
const runs = { findRunning: async (ids: readonly string[]) => new Set(ids.filter((id) => !lost.has(id))) };

const test = withApi().extend('ops', FILE, ({ api, clock }) => createOps(api.connection.db, { now: clock.now, runs }));
test.beforeEach(async ({ api, clock }) => {
  clock.stop(new Date());
  await api.connection.pool.query('DELETE FROM outbox');
});

const ago = (clock: TestClock, ms: number): Date => new Date(clock.now().getTime() - ms);
const linesOf = ({ printed }: OpsResult, id: string): string[] =>
  printed.filter((line) => line.includes(id)).map((line) => line.trim());

test('waiting lists each open settlement with its cause, its beginning, its end and its organization', async ({
  api,
  partner,
  ops,
  clock,
}) => {
  const since = ago(clock, HOUR_MS);
  const held = await openSettlement(api, partner, ['compliance_hold'], since);
  const unpaid = await openSettlement(api, partner, ['awaiting_funds'], since);
  const inReview = await openSettlement(api, partner, IN_REVIEW, since);
  const ended = await openSettlement(api, partner, ['canceled'], since);
  const result = await expectUnchanged(api.connection.pool, () => ops('waiting'));
  expect(result.exitCode).toBe(0);
  const organization = `organization ${partner.orgId}`;
  const begun = `since ${since.toISOString()} (1 h)`;
  const until = new Date(since.getTime() + HOUR_MS / 2).toISOString();
  expect(linesOf(result, unpaid)).toEqual([
    `${unpaid} awaiting_funds 250.00 USD: waits for card evidence; ${begun}, until ${until}; ${organization}`,
  ]);
  expect(linesOf(result, held)[0]).toContain('compliance_hold 250.00 USD: waits for the verification of recipient ');
  expect(linesOf(result, inReview)).toEqual([
    `${inReview} needs_review 250.00 USD: waits for an operator: resolve it as paid or refused; ${begun}; ${organization}`,
  ]);
  expect(linesOf(result, ended)).toEqual([]);

  const { printed } = await ops('waiting', '--json');
  const { settlements, verifications, limit, more } = JSON.parse(printed.join(''));
  expect(settlements.find(({ settlement_id }: { settlement_id: string }) => settlement_id === unpaid)).toEqual({
    settlement_id: unpaid,
    org_id: partner.orgId,
    status: 'awaiting_funds',
    amount: '250.00 USD',
    reference: null,
    must_act: true,
    waits_for: 'card evidence',
    since: since.toISOString(),
    expires_at: until,
  });
  expect([verifications, limit, more]).toEqual([[], 200, false]);
});

test('waiting and stuck count from when a settlement entered its state, whatever arrives later', async ({
  api,
  partner,
  ops,
  clock,
}) => {
  const since = ago(clock, HOUR_MS);
  const inReview = await openSettlement(api, partner, IN_REVIEW, since);
  const funded = await openSettlement(api, partner, ['awaiting_funds', 'funded'], since);
  for (const id of [inReview, funded])
    await sendCardproc(api, { ...cardprocBody(id, { amount_received: 10_000 }), id: `evt_${id}` });
  expect(linesOf(await ops('waiting'), inReview)[0]).toContain(`since ${since.toISOString()} (1 h)`);
  expect(linesOf(await ops('stuck'), funded)[0]).toContain(`since ${since.toISOString()} (1 h)`);
});

test('waiting begins with what an operator must act on, even if others wait for longer', async ({
  api,
  partner,
  ops,
  clock,
}) => {
  const young = await openSettlement(api, partner, IN_REVIEW, ago(clock, HOUR_MS / 60));
  const overdue = await openSettlement(api, partner, ['awaiting_funds'], ago(clock, HOUR_MS));
  const old = await openSettlement(api, partner, ['compliance_hold'], ago(clock, 24 * HOUR_MS));
  const { printed } = await ops('waiting');
  const placeOf = (start: string): number => printed.findIndex((line) => line.trim().startsWith(start));
  const places = ['Settlements to act on', overdue, young, 'Settlements that go on', old].map(placeOf);
  expect(places).not.toContain(-1);
  expect(places).toEqual(places.toSorted((one, other) => one - other));
});

test('waiting shows the recipient of an open verification, and no name of a person', async ({
  api,
  partner,
  ops,
  clock,
}) => {
  const recipientId = await createRecipient(api, partner, { name: 'Secretive Person' });
  await api.connection.pool.query(
    `INSERT INTO verifications (verification_id, org_id, recipient_id, verification_type, status, provider,
       subject_sealed, subject_digest, request_id, created_at, expires_at)
     VALUES ('verification-1', $1, $2, 'identity', 'pending', 'idverify', 'sealed', '', 'test', $3, $4)`,
    [partner.orgId, recipientId, ago(clock, HOUR_MS), clock.now()],
  );
  const results = [await ops('waiting'), await ops('waiting', '--json')];
  expect(linesOf(results[0] ?? expect.fail(), 'verification-1')[0]).toContain(
    `waits for the decision about recipient ${recipientId}`,
  );
  expect(JSON.parse(results[1]?.printed[0] ?? '').verifications).toEqual([
    {
      verification_id: 'verification-1',
      org_id: partner.orgId,
      recipient_id: recipientId,
      since: ago(clock, HOUR_MS).toISOString(),
      expires_at: clock.now().toISOString(),
    },
  ]);
  expect(JSON.stringify(results)).not.toContain('Secretive');
});

test('stuck lists a settlement past its window and one that no worker moves, and none that waits in time', async ({
  api,
  partner,
  ops,
  clock,
}) => {
  const over = await openSettlement(api, partner, ['awaiting_funds'], ago(clock, HOUR_MS));
  const unattended = await openSettlement(api, partner, ['awaiting_funds', 'funded'], ago(clock, HOUR_MS));
  const inTime = await openSettlement(api, partner, ['awaiting_funds'], ago(clock, HOUR_MS / 4));
  const justAccepted = await openSettlement(api, partner);
  const result = await ops('stuck');
  expect(result.exitCode).toBe(0);
  expect([over, unattended, inTime, justAccepted].map((id) => linesOf(result, id).length)).toEqual([1, 1, 0, 0]);
});

test('stuck lists a settlement whose money has been there for five minutes and that does not go on', async ({
  api,
  partner,
  ops,
  clock,
}) => {
  const [paid, partly] = [
    await openSettlement(api, partner, ['awaiting_funds'], clock.now()),
    await openSettlement(api, partner, ['awaiting_funds'], clock.now()),
  ];
  for (const [id, amount] of [
    [paid, 25_000],
    [partly, 24_999],
  ] as const)
    await sendCardproc(api, { ...cardprocBody(id, { amount_received: amount }), id: `evt_${id}` });
  await api.connection.pool.query('DELETE FROM outbox');
  expect(linesOf(await ops('stuck'), paid)).toEqual([]);
  clock.advance(HOUR_MS / 10);
  const stuck = await ops('stuck');
  expect([paid, partly].map((id) => linesOf(stuck, id).length)).toEqual([1, 0]);
  expect((await ops('show', paid)).printed.join('\n')).toContain('Its wait should have ended');
});

test('stuck lists a settlement that its evidence has not moved for five minutes', async ({
  api,
  partner,
  ops,
  clock,
}) => {
  const [declined, held, inReview] = [
    await openSettlement(api, partner, ['awaiting_funds'], clock.now()),
    await openSettlement(api, partner, ['compliance_hold'], clock.now()),
    await openSettlement(api, partner, IN_REVIEW, clock.now()),
  ];
  for (const id of [declined, held]) await sendCardproc(api, cardprocBody(id, {}, 'payment_intent.payment_failed'));
  await createSteps(api, partner).answerPayout(inReview, 'payout_confirmed');
  await api.connection.pool.query('DELETE FROM outbox');
  const early = await ops('stuck');
  clock.advance(HOUR_MS / 10);
  const stuck = await ops('stuck');
  const seen = [early, stuck].map((result) => [declined, inReview, held].map((id) => linesOf(result, id).length));
  expect(seen).toEqual([
    [0, 0, 0],
    [1, 1, 0],
  ]);
  for (const id of [declined, inReview])
    expect((await ops('show', id)).printed.join('\n')).toContain('Its wait should have ended');
});

test("stuck compares with a settlement's own clock", async ({ api, partner, ops, clock }) => {
  const advanced = await openSettlement(api, partner, ['awaiting_funds'], clock.now());
  await api.connection.pool.query('UPDATE settlements SET clock_offset_ms = $2 WHERE settlement_id = $1', [
    advanced,
    HOUR_MS,
  ]);
  expect(linesOf(await ops('stuck'), advanced)).toHaveLength(1);
});

test('stuck lists an outbox row that has waited for a minute, with its last error', async ({ api, partner, ops }) => {
  const settlementId = await openSettlement(api, partner);
  await api.connection.pool.query(
    `UPDATE outbox SET created_at = now() - interval '61 seconds', attempts = 4, last_error = 'ServiceError'
       WHERE object_id = $1`,
    [settlementId],
  );
  expect(linesOf(await ops('stuck'), settlementId)).toEqual([
    expect.stringMatching(/^settlement stl_\w+: since .*, 4 attempts, last error ServiceError$/),
  ]);
  const { outbox } = JSON.parse((await ops('stuck', '--json')).printed[0] ?? '');
  expect(outbox).toMatchObject([
    { kind: 'settlement', object_id: settlementId, attempts: 4, last_error: 'ServiceError' },
  ]);
});

test('stuck lists an open settlement without a run, but not while the outbox has a row for it', async ({
  api,
  partner,
  ops,
  clock,
}) => {
  const settlementId = await openSettlement(api, partner, ['awaiting_funds'], clock.now());
  lost.add(settlementWorkflowId(settlementId));
  clock.stop(new Date(clock.now().getTime() + 20_000));
  expect(linesOf(await ops('stuck'), settlementId)).toEqual([]);
  await api.connection.pool.query('DELETE FROM outbox');
  expect(linesOf(await ops('stuck'), settlementId)).toEqual([
    `settlement ${settlementId}: no run; it is started again within a minute, or now by redispatch; ` +
      `organization ${partner.orgId}`,
  ]);
  expect(JSON.parse((await ops('stuck', '--json')).printed[0] ?? '').without_run).toEqual([
    { kind: 'settlement', object_id: settlementId, org_id: partner.orgId },
  ]);
});

test('stuck says what is wrong with Temporal, and lists what the database knows', async ({ api, partner, clock }) => {
  const over = await openSettlement(api, partner, ['awaiting_funds'], ago(clock, HOUR_MS));
  const lacking = temporalFault('search_attributes_missing', 'OrgId');
  const ops = createOps(api.connection.db, { now: clock.now, temporalHealth: async () => lacking });
  const result = await ops('stuck');
  expect(result.exitCode).toBe(0);
  expect(linesOf(result, over)).toHaveLength(1);
  expect(result.printed).toContain(
    `Open without a run: unknown. ${lacking.sentence}. The other lists are from the database.`,
  );
  const known = { temporal: 'down', temporal_cause: 'search_attributes_missing', without_run: null };
  expect(JSON.parse((await ops('stuck', '--json')).printed[0] ?? '')).toMatchObject(known);

  const queue = { taskQueue: 'settlement', promoted: { deploymentName: 'worker', buildId: 'b' }, polling: [undefined] };
  const unserved = createOps(api.connection.db, { now: clock.now, unservedQueues: async () => [queue] });
  expect((await unserved('stuck')).printed).toContain(
    'Start workers: no worker of version worker/b polls settlement, and no other gets its tasks; ' +
      'those that poll are without a version. ' +
      'temporal worker deployment set-current-version --deployment-name worker --unversioned --yes',
  );
  const findRunning = () => Promise.reject(temporalSilence());
  const silent = createOps(api.connection.db, { now: clock.now, runs: { findRunning } });
  expect((await silent('stuck')).printed).toContainEqual(
    expect.stringMatching(/^Open without a run: unknown. Temporal does not answer: /),
  );
});

test('stuck says since when there was no sweep for lost runs', async ({ api, ops }) => {
  const linesAbout = async () =>
    (await ops('stuck')).printed.filter((line) => line.startsWith('No sweep for lost runs'));
  await api.connection.pool.query('UPDATE sweeps SET finished_at = now()');
  expect(await linesAbout()).toEqual([]);
  await api.connection.pool.query(
    `UPDATE sweeps SET finished_at = now() - interval '1 hour' WHERE kind = 'settlement'`,
  );
  expect(await linesAbout()).toHaveLength(1);
});

test.for(['waiting', 'stuck'])(
  '%s may take minutes: a slow list fails no other one, although all have one connection',
  async (name, { api, onTestFinished }) => {
    const patienceMs = 1_000;
    const own = connect(api.databaseUrl, {
      ...{ poolSizeMax: 1, name: 'test-ops', onIdleError: () => undefined },
      connectTimeoutMs: patienceMs,
    });
    onTestFinished(own.close);
    const recorded = recordStatements(own.pool);
    const hold = (holder: pg.PoolClient) => holder.query('LOCK TABLE settlements IN ACCESS EXCLUSIVE MODE');
    const change = () => delay(1.5 * patienceMs);
    const [result] = await raceBehind(api.owner.pool, { hold, change }, [() => createOps(own.db)(name)]);
    expect(result).toMatchObject({ exitCode: 0, warned: [] });
    expect(recorded()).toContainEqual(expect.stringContaining("statement_timeout = '10min'"));
  },
);
