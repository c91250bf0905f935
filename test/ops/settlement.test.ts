/** `redispatch`, `cancel` and `resolve` without Temporal: each change is one transaction with its audit entry. */
import { expect } from 'vitest';
import { FILE, withApi } from '../support/fixture.ts';
import { createOps, listAudit } from '../support/ops.ts';
import { readSettlement } from '../support/partner.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { openSettlement } from '../support/settlement.ts';

const AUDIT_ARGS = ['--operator', 'Ana', '--note', 'the partner asked by phone', '--yes'];

const test = withApi()
  .extend('ops', FILE, ({ api }) => createOps(api.connection.db))
  .extend('accepted', FILE, ({ api, partner }) => openSettlement(api, partner))
  .extend('funded', FILE, ({ api, partner }) => openSettlement(api, partner, ['awaiting_funds', 'funded']))
  .extend('ended', FILE, ({ api, partner }) => openSettlement(api, partner, ['canceled']));

type Ids = { readonly accepted: string; readonly funded: string; readonly ended: string };

test.for<[string, number, (ids: Ids) => string[]]>([
  ['cancel without a settlement', 2, () => ['cancel', ...AUDIT_ARGS]],
  ['cancel of an unknown settlement', 1, () => ['cancel', 'stl_none', ...AUDIT_ARGS]],
  ['cancel past awaiting_funds', 1, ({ funded }) => ['cancel', funded, ...AUDIT_ARGS]],
  ['redispatch without a settlement', 2, () => ['redispatch', ...AUDIT_ARGS]],
  ['redispatch of an unknown settlement', 1, () => ['redispatch', 'stl_none', ...AUDIT_ARGS]],
  ['redispatch of a settlement that has ended', 1, ({ ended }) => ['redispatch', ended, ...AUDIT_ARGS]],
  ['redispatch of two settlements', 2, ({ accepted, funded }) => ['redispatch', accepted, funded, ...AUDIT_ARGS]],
  ['redispatch --all with a settlement', 2, ({ accepted }) => ['redispatch', accepted, '--all', ...AUDIT_ARGS]],
  ['resolve with an unknown outcome', 2, ({ accepted }) => ['resolve', accepted, 'maybe', ...AUDIT_ARGS]],
  ['resolve of an unknown settlement', 1, () => ['resolve', 'stl_none', 'paid', ...AUDIT_ARGS]],
  ['resolve of a settlement that is not in review', 1, ({ funded }) => ['resolve', funded, 'paid', ...AUDIT_ARGS]],
])('%s exits with %i, and writes nothing', async ([, exitCode, argsOf], { api, ops, accepted, funded, ended }) => {
  await expectUnchanged(api.connection.pool, async () => {
    expect(await ops(...argsOf({ accepted, funded, ended }))).toMatchObject({ exitCode, printed: [] });
  });
});

test('cancel shows the operator in the timeline and in one audit entry, and signals the workflow', async ({
  api,
  partner,
  ops,
}) => {
  const settlementId = await openSettlement(api, partner, ['awaiting_funds']);
  expect(await ops('cancel', settlementId, ...AUDIT_ARGS)).toMatchObject({
    exitCode: 0,
    printed: [`${settlementId} is canceled.`],
  });
  const { status, timeline } = await readSettlement(api, partner, settlementId);
  expect([status, timeline.at(-1).reason]).toEqual(['canceled', 'canceled_by_operator']);
  expect(await listAudit(api.connection.db, settlementId)).toEqual([
    { orgId: partner.orgId, action: 'settlement_cancel', operator: 'ana', note: AUDIT_ARGS[3] },
  ]);
  const { rows } = await api.connection.pool.query(
    'SELECT signal FROM outbox WHERE object_id = $1 ORDER BY outbox_id',
    [settlementId],
  );
  expect(rows.map(({ signal }) => signal)).toEqual([null, 'canceled']);
});

test('cancel of a canceled settlement says that it was canceled already, and writes nothing', async ({
  api,
  ops,
  ended,
}) => {
  await expectUnchanged(api.connection.pool, async () => {
    expect(await ops('cancel', ended, ...AUDIT_ARGS)).toEqual({
      exitCode: 0,
      printed: [`${ended} was canceled already.`],
      warned: [],
    });
  });
});

test('cancel changes nothing when its audit entry cannot be written, and exits with 70', async ({
  api,
  partner,
  ops,
  accepted,
}) => {
  await api.owner.pool.query('ALTER TABLE audit_entries RENAME TO audit_entries_away');
  try {
    expect((await ops('cancel', accepted, ...AUDIT_ARGS)).exitCode).toBe(70);
  } finally {
    await api.owner.pool.query('ALTER TABLE audit_entries_away RENAME TO audit_entries');
  }
  expect((await readSettlement(api, partner, accepted)).status).toBe('accepted');
});

test('redispatch --all writes one outbox row and one audit entry for each of 250 open settlements', async ({
  api,
  ops,
  accepted,
}) => {
  const { pool } = api.connection;
  await pool.query(
    `INSERT INTO settlements SELECT (jsonb_populate_record(s, jsonb_build_object('settlement_id', 'stl_copy_' || n))).*
       FROM settlements s, generate_series(1, 250) n WHERE settlement_id = $1`,
    [accepted],
  );
  await pool.query('DELETE FROM outbox');
  const isOpen = `status NOT IN ('settled', 'rejected', 'expired', 'failed', 'canceled')`;
  const { rows: open } = await pool.query(
    `SELECT settlement_id FROM settlements WHERE ${isOpen} ORDER BY settlement_id`,
  );
  const { exitCode, printed } = await ops('redispatch', '--all', ...AUDIT_ARGS, '--json');
  expect(exitCode).toBe(0);
  expect(printed.map((line) => JSON.parse(line))).toEqual([
    { settlements: open.length, verifications: 0, subscriptions: 0 },
  ]);
  const { rows: queued } = await pool.query(
    `SELECT object_id AS settlement_id FROM outbox WHERE kind = 'settlement' ORDER BY object_id`,
  );
  expect(queued).toEqual(open);
  const { rows: audited } = await pool.query(
    `SELECT count(*)::int AS n FROM audit_entries
       WHERE action = 'settlement_redispatch' AND object_id LIKE 'stl_copy_%'`,
  );
  expect(audited).toEqual([{ n: 250 }]);
  await pool.query(`DELETE FROM outbox`);
  await api.owner.pool.query(`DELETE FROM settlements WHERE settlement_id LIKE 'stl_copy_%'`);
});
