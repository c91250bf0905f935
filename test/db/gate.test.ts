import { sql } from 'drizzle-orm';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Connection, connect } from '../../db/client.ts';
import { NO_DISPATCHER } from '../../db/commands/commit.ts';
import {
  approveGateEvidence,
  type NewGateEvidence,
  recordGateEvidence,
  revokeGateEvidence,
} from '../../db/commands/gate.ts';
import { newId } from '../../db/id.ts';
import { listGateEvidence } from '../../db/queries/gate.ts';
import { auditEntries } from '../../db/schema/index.ts';
import { DomainError } from '../../domain/error.ts';
import { digestTables, raceBehind } from '../support/database.ts';
import { insertGateEvidence, withoutGateStore } from '../support/gate.ts';
import { createTestDatabase } from '../support/postgres.ts';

const AT = new Date('2026-11-21T08:00:00.000Z');
const later = (minutes: number) => new Date(AT.getTime() + minutes * 60_000);
const HERE = 'remote sandbox';

let connection: Connection;
let drop: () => Promise<void>;

beforeAll(async () => {
  const database = await createTestDatabase();
  drop = database.drop;
  connection = connect(database.databaseUrl, { poolSizeMax: 6, name: 'test', onIdleError: () => undefined });
});
afterAll(async () => {
  await connection.close();
  await drop();
});

type Runtime = 'remote-sandbox' | 'production';
const deps = (at: Date, runtime: Runtime = 'remote-sandbox') => ({
  db: connection.db,
  dispatcher: NO_DISPATCHER,
  runtime,
  now: () => at,
});
const record = ({ at = AT, ...changes }: Partial<NewGateEvidence> & { readonly at?: Date } = {}) =>
  recordGateEvidence(deps(at), {
    gate: 'compliance_program',
    corridor: 'US-JM',
    reference: 'review.pdf',
    sha256: Buffer.alloc(32, 1),
    operator: 'ana',
    expiresAt: later(60),
    ...changes,
  });
const act = (operator: string) => ({ operator, note: `by ${operator}` });
const approve = (evidenceId: string, operator: string, minutes = 1, runtime?: Runtime) =>
  approveGateEvidence(deps(later(minutes), runtime), evidenceId, act(operator));
const revoke = (evidenceId: string, operator: string, runtime?: Runtime) =>
  revokeGateEvidence(deps(later(2), runtime), evidenceId, act(operator));
const auditOf = async (evidenceId: string) =>
  (await connection.db.select().from(auditEntries).where(sql`object_id = ${evidenceId}`)).map(
    ({ auditId: _id, ...entry }) => entry,
  );
const read = async (evidenceId: string) =>
  (await listGateEvidence(connection.db, HERE)).find((item) => item.evidenceId === evidenceId);

/** The act is refused in this way and leaves every table as it was. */
async function refused(state: string, run: () => Promise<unknown>): Promise<void> {
  const before = await digestTables(connection.pool);
  const error = await run().catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(DomainError);
  expect(error).toMatchObject(
    state === 'not_found' ? { code: 'not_found' } : { code: 'state_conflict', extras: { current_state: state } },
  );
  expect(await digestTables(connection.pool)).toEqual(before);
}

describe('is refused, and nothing is written', () => {
  test('approving what does not exist, or belongs to another environment', async () => {
    const evidenceId = await record();
    await refused('not_found', () => approve(newId(), 'bo'));
    await refused('not_found', () => approve(evidenceId, 'bo', 1, 'production'));
    await refused('not_found', () => revoke(evidenceId, 'bo', 'production'));
  });

  test('a second approval by the same operator', async () => {
    const evidenceId = await record();
    await approve(evidenceId, 'bo');
    await refused('approved', () => approve(evidenceId, 'bo', 2));
  });

  test('approving what expired or was revoked', async () => {
    const evidenceId = await record();
    await refused('expired', () => approve(evidenceId, 'bo', 60));
    await revoke(evidenceId, 'ana');
    await refused('revoked', () => approve(evidenceId, 'bo', 3));
  });

  test('revoking twice', async () => {
    const evidenceId = await record();
    await revoke(evidenceId, 'ana');
    await refused('revoked', () => revoke(evidenceId, 'bo'));
  });
});

describe('an act without its audit entry', () => {
  afterEach(() => connection.db.execute('DROP FUNCTION break_it() CASCADE'));

  test('is not done: neither record, approve nor revoke', async () => {
    const evidenceId = await record();
    await connection.db.execute(
      `CREATE FUNCTION break_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'broken'; END $$`,
    );
    await connection.db.execute(
      'CREATE TRIGGER broken BEFORE INSERT ON audit_entries FOR EACH ROW EXECUTE FUNCTION break_it()',
    );
    const before = await digestTables(connection.pool);
    await expect(record()).rejects.toThrow();
    await expect(approve(evidenceId, 'bo')).rejects.toThrow();
    await expect(revoke(evidenceId, 'bo')).rejects.toThrow();
    expect(await digestTables(connection.pool)).toEqual(before);
  });
});

describe('the database refuses', () => {
  test.each([
    ['to change what was recorded', `UPDATE launch_gate_evidence SET expires_at = expires_at + interval '1 year'`],
    [
      'to change it together with a revocation',
      `UPDATE launch_gate_evidence SET corridor = 'CA-JM', revoked_at = now(), revoked_by = 'x'`,
    ],
    [
      'to take a revocation back',
      'UPDATE launch_gate_evidence SET revoked_at = NULL, revoked_by = NULL WHERE revoked_at IS NOT NULL',
    ],
    ['to move a revocation', `UPDATE launch_gate_evidence SET revoked_at = now() WHERE revoked_at IS NOT NULL`],
    ['a revocation by nobody', `UPDATE launch_gate_evidence SET revoked_at = now() WHERE revoked_at IS NULL`],
    ['to delete evidence', 'DELETE FROM launch_gate_evidence'],
    ['to empty the evidence', 'TRUNCATE launch_gate_evidence CASCADE'],
    ['to change an approval', `UPDATE launch_gate_approvals SET operator = 'zoe'`],
    ['to delete an approval', 'DELETE FROM launch_gate_approvals'],
    ['to change the audit', `UPDATE audit_entries SET note = ''`],
    ['to delete from the audit', 'DELETE FROM audit_entries'],
    [
      'an operator under a second spelling',
      `INSERT INTO launch_gate_approvals SELECT evidence_id, 'Ana', now() FROM launch_gate_evidence`,
    ],
    [
      'a nameless operator',
      `INSERT INTO launch_gate_approvals SELECT evidence_id, '', now() FROM launch_gate_evidence`,
    ],
    [
      'evidence that expires before it is recorded',
      `INSERT INTO launch_gate_evidence VALUES ('x', 'g', 'e', 'c', 'r', '\\x00', 'ana', now(), now() - interval '1 s')`,
    ],
  ])('%s', async (_what, statement) => {
    await approve(await record(), 'bo');
    await revoke(await record(), 'bo');
    const before = await digestTables(connection.pool);
    await expect(connection.pool.query(statement)).rejects.toThrow();
    expect(await digestTables(connection.pool)).toEqual(before);
  });
});

describe('reading', () => {
  test('throws when the store cannot be read: whoever asks decides that this means closed', async () => {
    await withoutGateStore(connection.db, () => expect(listGateEvidence(connection.db, HERE)).rejects.toThrow());
  });

  test('gives what is of this environment, and of one corridor when asked, with everybody who approved', async () => {
    await insertGateEvidence(connection.db, 'production', {
      gates: ['compliance_program'],
      corridors: ['US-TT', 'CA-TT'],
      operators: ['ana', 'bo', 'cy'],
    });
    await insertGateEvidence(connection.db, HERE, { gates: ['compliance_program'], corridors: ['US-TT'] });
    expect(await listGateEvidence(connection.db, 'production')).toHaveLength(2);
    const [only, ...more] = await listGateEvidence(connection.db, 'production', 'US-TT');
    expect(more).toEqual([]);
    expect(only?.approvals.map(({ operator }) => operator).sort()).toEqual(['ana', 'bo', 'cy']);
    expect(only).toMatchObject({
      environment: 'production',
      corridor: 'US-TT',
      sha256: '07'.repeat(32),
      revokedAt: null,
    });
  });
});

describe('an act', () => {
  test('is kept with who did it, when and why', async () => {
    const evidenceId = await record();
    await approve(evidenceId, 'bo', 1);
    await approve(evidenceId, 'cy', 2);
    await revoke(evidenceId, 'ana');
    expect(await auditOf(evidenceId)).toEqual([
      expect.objectContaining({
        action: 'gate_record',
        operator: 'ana',
        at: AT,
        orgId: null,
        note: expect.stringContaining('compliance_program US-JM in remote sandbox'),
      }),
      expect.objectContaining({ action: 'gate_approve', operator: 'bo', at: later(1), note: 'by bo' }),
      expect.objectContaining({ action: 'gate_approve', operator: 'cy', at: later(2) }),
      expect.objectContaining({ action: 'gate_revoke', operator: 'ana', at: later(2) }),
    ]);
    expect(await read(evidenceId)).toMatchObject({
      revokedAt: later(2),
      approvals: [{ operator: 'bo' }, { operator: 'cy' }],
    });
  });

  test('of one operator who approves three times at once counts once', async () => {
    const evidenceId = await record();
    const outcomes = await raceBehind(
      connection.pool,
      {
        hold: (holder) =>
          holder.query('SELECT 1 FROM launch_gate_evidence WHERE evidence_id = $1 FOR UPDATE', [evidenceId]),
      },
      [1, 2, 3].map(
        (minutes) => () =>
          approve(evidenceId, 'bo', minutes).then(
            () => 'approved',
            () => 'refused',
          ),
      ),
    );
    expect(outcomes.filter((outcome) => outcome === 'approved')).toHaveLength(1);
    expect((await read(evidenceId))?.approvals).toHaveLength(1);
  });

  test('of approving and revoking at once leaves it revoked, whoever was first', async () => {
    const evidenceId = await record();
    await raceBehind(
      connection.pool,
      {
        hold: (holder) =>
          holder.query('SELECT 1 FROM launch_gate_evidence WHERE evidence_id = $1 FOR UPDATE', [evidenceId]),
      },
      [() => approve(evidenceId, 'bo').catch(() => undefined), () => revoke(evidenceId, 'cy')],
    );
    expect((await read(evidenceId))?.revokedAt).toEqual(later(2));
  });
});
