/** `reconcile` with more settlements than it prints. test/e2e/reconcile.test.ts has what differs after a restore. */
import { rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, vi } from 'vitest';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { RUNS_LISTED_MAX } from '../../process/runs.ts';
import { withApi } from '../support/fixture.ts';
import { createOps } from '../support/ops.ts';
import { createRecipient } from '../support/partner.ts';
import { openSettlement } from '../support/settlement.ts';
import { fillSettlements } from '../support/settlement-fill.ts';
import { openVerification } from '../support/verification.ts';

const SETTLED = 2_500;

const test = withApi();

test('reconcile names the settlement that the file of the rail lacks, however many were settled before it', async ({
  api,
  partner,
  steps,
  onTestFinished,
}) => {
  await fillSettlements(api.owner.pool, api.deps.sealer, {
    ...{ orgId: partner.orgId, templateId: await steps.accept(), settlements: SETTLED },
    // Many of one moment.
    columns: { status: `'settled'`, updated_at: `now() - n / 100 * interval '1 second'` },
  });
  const { rows } = await api.owner.pool.query<{ id: string }>(
    `SELECT settlement_id AS id FROM settlements WHERE status = 'settled' ORDER BY updated_at, settlement_id`,
  );
  expect(rows).toHaveLength(SETTLED);
  const newest = rows.pop()?.id ?? expect.unreachable();
  // It settled before the time that is compared, and a refund of it was recorded since.
  const changed = rows.pop()?.id ?? expect.unreachable();
  await api.owner.pool.query(
    `INSERT INTO settlement_transitions (settlement_id, sequence, from_status, to_status, at)
     SELECT settlement_id, 9, 'paying_out', 'settled',
       CASE settlement_id WHEN $1 THEN now() - interval '4 days' ELSE updated_at END
     FROM settlements WHERE status = 'settled'`,
    [changed],
  );
  const file = path.join(os.tmpdir(), `payouts-${process.pid}.csv`);
  onTestFinished(() => rmSync(file));
  writeFileSync(file, `settlement_id,outcome\n${rows.map(({ id }) => `${id},paid\n`).join('')}`);
  const { exitCode, printed } = await createOps(api.connection.db)('reconcile', '--rail', file, '--json');
  expect([exitCode, JSON.parse(printed.join('')).settlements_without_payout]).toEqual([1, [newest]]);
});

const PAYING_OUT = ['awaiting_funds', 'funded', 'paying_out'] as const;

test('reconcile names what the rail paid twice, and what it paid although the settlement has failed or is open', async ({
  api,
  partner,
  onTestFinished,
}) => {
  const settled = await openSettlement(api, partner, [...PAYING_OUT, 'settled']);
  const [failed, refused] = [
    await openSettlement(api, partner, [...PAYING_OUT, 'failed']),
    await openSettlement(api, partner, [...PAYING_OUT, 'failed']),
  ];
  const open = await openSettlement(api, partner, PAYING_OUT);
  const file = path.join(os.tmpdir(), `outcomes-${process.pid}.csv`);
  onTestFinished(() => rmSync(file));
  const paid = [settled, failed, settled, open].map((id) => `paid, 2026 , ${id}`);
  writeFileSync(file, ['outcome,year, settlement_id', ...paid, '', `refused,2026,${refused}`].join('\r\n'));
  const { exitCode, printed } = await createOps(api.connection.db)('reconcile', '--rail', file, '--json');
  expect([exitCode, JSON.parse(printed.join(''))]).toMatchObject([
    1,
    {
      paid_twice: [settled],
      payouts_of_ended_settlements: [failed],
      payouts_of_open_settlements: [open],
      payouts_without_settlement: [],
    },
  ]);
});

test('reconcile on a machine whose clock is a day behind still names what has just settled and was not paid', async ({
  api,
  partner,
  onTestFinished,
}) => {
  const settled = await openSettlement(api, partner, [...PAYING_OUT, 'settled']);
  const { rows } = await api.owner.pool.query<{ id: string }>(
    `SELECT settlement_id AS id FROM settlements WHERE status = 'settled' AND settlement_id <> $1`,
    [settled],
  );
  const file = path.join(os.tmpdir(), `others-${process.pid}.csv`);
  onTestFinished(() => rmSync(file));
  writeFileSync(file, `settlement_id,outcome\n${rows.map(({ id }) => `${id},paid\n`).join('')}`);
  const reconcile = createOps(api.connection.db);
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 86_400_000 });
  const { printed } = await reconcile('reconcile', '--rail', file, '--json').finally(() => vi.useRealTimers());
  expect(JSON.parse(printed.join('')).settlements_without_payout).toEqual([settled]);
});

test('reconcile looks for a relative file in the folder where its caller called npm', async ({
  api,
  onTestFinished,
}) => {
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv('INIT_CWD', '/home/nobody');
  const { exitCode, warned } = await createOps(api.connection.db)('reconcile', '--rail', 'payouts.csv');
  expect([exitCode, warned]).toEqual([1, ['/home/nobody/payouts.csv: cannot be read.']]);
});

test('reconcile refuses a time that ends before it begins: no settlement would be compared', async ({ api }) => {
  const ops = createOps(api.connection.db);
  const fault = '--since must be longer ago than --until.';
  for (const times of [
    ['--since', '1h', '--until', '2h'],
    ['--since', '2h', '--until', '120min'],
    ['--until', '3d'],
  ])
    expect(await ops('reconcile', ...times)).toMatchObject({ exitCode: 2, warned: [fault, expect.anything()] });
  expect((await ops('reconcile', '--since', '2h', '--until', '1h')).exitCode).not.toBe(2);
});

test('reconcile leaves out a run that ends while it compares', async ({ api, partner }) => {
  const [ending, stale] = [
    await openSettlement(api, partner, [...PAYING_OUT, 'failed']),
    await openSettlement(api, partner, [...PAYING_OUT, 'failed']),
  ];
  const { printed } = await createOps(api.connection.db, {
    listRuns: async () => [ending, stale].map((objectId) => ({ objectId, isRunning: true })),
    runs: { findRunning: async () => new Set([settlementWorkflowId(stale)]) },
  })('reconcile', '--json');
  expect(JSON.parse(printed.join('')).runs_of_ended_rows).toEqual([stale]);
});

test('reconcile exits with 1 and says why when there are more runs than it compares', async ({ api, steps }) => {
  const run = { objectId: await steps.accept(), isRunning: true };
  const compare = async (count: number) =>
    await createOps(api.connection.db, { listRuns: async () => Array.from({ length: count }, () => run) })('reconcile');
  expect(await compare(RUNS_LISTED_MAX)).toMatchObject({
    exitCode: 1,
    warned: [expect.stringContaining(`Only ${RUNS_LISTED_MAX} runs are compared`)],
  });
  expect(await compare(1)).toMatchObject({ exitCode: 0, warned: [] });
});

test('reconcile says that it names only the first 1000 of all settlements and verifications without a run', async ({
  api,
}) => {
  const owner = await api.createCaller();
  await openVerification(api, owner, await createRecipient(api, owner));
  const templateId = await openSettlement(api, owner);
  const fill = { orgId: owner.orgId, templateId, settlements: 1_001, columns: {} };
  await fillSettlements(api.owner.pool, api.deps.sealer, fill);
  await api.owner.pool.query('DELETE FROM outbox');
  const runs = { findRunning: async () => new Set<string>() };
  const ops = createOps(api.connection.db, { runs, now: () => new Date(Date.now() + 60_000) });
  expect((await ops('reconcile')).printed).toContain(
    'The database has an open row, and Temporal no run: the first 1000',
  );
});
