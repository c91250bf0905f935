import { describe, expect } from 'vitest';
import type { Connection } from '../../db/client.ts';
import { NO_DISPATCHER } from '../../db/commands/commit.ts';
import {
  approveGateEvidence,
  type NewGateEvidence,
  recordGateEvidence,
  revokeGateEvidence,
} from '../../db/commands/gate.ts';
import { newId } from '../../db/id.ts';
import { listGateEvidence } from '../../db/queries/gate.ts';
import { DomainError } from '../../domain/error.ts';
import { raceBehind, whileWritesFail } from '../support/database.ts';
import { FILE, withDatabase } from '../support/fixture.ts';
import { insertGateEvidence } from '../support/gate.ts';
import { expectUnchanged } from '../support/refusal.ts';

const AT = new Date('2026-11-21T08:00:00.000Z');
const later = (minutes: number) => new Date(AT.getTime() + minutes * 60_000);
const HERE = 'remote sandbox';

/** `gates`: what operators do, at times that the test gives. */
const test = withDatabase(6).extend('gates', FILE, ({ connection }) => createGates(connection));

type Runtime = 'remote-sandbox' | 'production';

function createGates({ db, pool }: Connection) {
  const deps = (at: Date, runtime: Runtime = 'remote-sandbox') => ({
    db,
    dispatcher: NO_DISPATCHER,
    runtime,
    now: () => at,
  });
  const act = (operator: string) => ({ operator, note: `by ${operator}` });
  return {
    record: ({ at = AT, ...changes }: Partial<NewGateEvidence> & { readonly at?: Date } = {}) =>
      recordGateEvidence(deps(at), {
        gate: 'compliance_program',
        corridor: 'US-JM',
        reference: 'review.pdf',
        sha256: Buffer.alloc(32, 1),
        operator: 'ana',
        expiresAt: later(60),
        ...changes,
      }),
    /** @param minutes after `AT` */
    approve: (evidenceId: string, operator: string, minutes = 1, runtime?: Runtime) =>
      approveGateEvidence(deps(later(minutes), runtime), evidenceId, act(operator)),
    revoke: (evidenceId: string, operator: string, runtime?: Runtime) =>
      revokeGateEvidence(deps(later(2), runtime), evidenceId, act(operator)),
    read: async (evidenceId: string) =>
      (await listGateEvidence(db, HERE)).find((item) => item.evidenceId === evidenceId),
    /** Expects that the change is refused in this way and leaves every table as it was. */
    expectRefusal: async (state: string, change: () => Promise<unknown>): Promise<void> => {
      await expectUnchanged(pool, async () => {
        const error = await change().catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(DomainError);
        expect(error).toMatchObject(
          state === 'not_found' ? { code: 'not_found' } : { code: 'state_conflict', extras: { current_state: state } },
        );
      });
    },
    /** Runs the changes of one piece of evidence while its row is locked, so that they start at the same moment. */
    race: <Result>(evidenceId: string, changes: readonly (() => Promise<Result>)[]) =>
      raceBehind(
        pool,
        {
          hold: (holder) =>
            holder.query('SELECT 1 FROM launch_gate_evidence WHERE evidence_id = $1 FOR UPDATE', [evidenceId]),
        },
        changes,
      ),
  };
}

describe('a refusal that writes nothing', () => {
  test('not_found for approving or revoking unknown evidence, or that of another environment', async ({ gates }) => {
    const { record, approve, revoke, expectRefusal } = gates;
    const evidenceId = await record();
    await expectRefusal('not_found', () => approve(newId(), 'bo'));
    await expectRefusal('not_found', () => approve(evidenceId, 'bo', 1, 'production'));
    await expectRefusal('not_found', () => revoke(evidenceId, 'bo', 'production'));
  });

  test('state_conflict for approving evidence that expired or was revoked', async ({ gates }) => {
    const { record, approve, revoke, expectRefusal } = gates;
    const evidenceId = await record();
    await expectRefusal('expired', () => approve(evidenceId, 'bo', 60));
    await revoke(evidenceId, 'ana');
    await expectRefusal('revoked', () => approve(evidenceId, 'bo', 3));
  });

  test('state_conflict for revoking twice', async ({ gates: { record, revoke, expectRefusal } }) => {
    const evidenceId = await record();
    await revoke(evidenceId, 'ana');
    await expectRefusal('revoked', () => revoke(evidenceId, 'bo'));
  });
});

test('nothing is recorded, approved or revoked while an audit entry cannot be written', async ({
  connection,
  owner,
  gates,
}) => {
  const { record, approve, revoke } = gates;
  const evidenceId = await record();
  await expectUnchanged(connection.pool, () =>
    whileWritesFail(owner.pool, 'audit_entries', async () => {
      await expect(record()).rejects.toThrow();
      await expect(approve(evidenceId, 'bo')).rejects.toThrow();
      await expect(revoke(evidenceId, 'bo')).rejects.toThrow();
    }),
  );
});

describe('the database refuses', () => {
  test.for([
    ['to change recorded evidence', `UPDATE launch_gate_evidence SET expires_at = expires_at + interval '1 year'`],
    [
      'to change evidence together with its revocation',
      `UPDATE launch_gate_evidence SET corridor = 'CA-JM', revoked_at = now(), revoked_by = 'x'`,
    ],
    [
      'to take a revocation back',
      'UPDATE launch_gate_evidence SET revoked_at = NULL, revoked_by = NULL WHERE revoked_at IS NOT NULL',
    ],
    [
      'to change the time of a revocation',
      `UPDATE launch_gate_evidence SET revoked_at = now() WHERE revoked_at IS NOT NULL`,
    ],
    ['to delete evidence', 'DELETE FROM launch_gate_evidence'],
    ['to truncate the evidence', 'TRUNCATE launch_gate_evidence CASCADE'],
  ])('%s', async ([_what = '', statement = ''], { connection, owner, gates }) => {
    const { record, approve, revoke } = gates;
    await approve(await record(), 'bo');
    await revoke(await record(), 'bo');
    await expectUnchanged(connection.pool, async () => {
      await expect(owner.pool.query(statement)).rejects.toThrow();
    });
  });
});

describe('reading the evidence of a gate', () => {
  test('returns the evidence of one environment, or of one corridor, with every approval', async ({ connection }) => {
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

describe("an operator's act on evidence", () => {
  test('counts once when one operator approves three times at the same moment', async ({ gates }) => {
    const { record, approve, race, read } = gates;
    const evidenceId = await record();
    const approveAt = (minutes: number) => () =>
      approve(evidenceId, 'bo', minutes).then(
        () => 'approved',
        () => 'refused',
      );
    const outcomes = await race(evidenceId, [1, 2, 3].map(approveAt));
    expect(outcomes.filter((outcome) => outcome === 'approved')).toHaveLength(1);
    expect((await read(evidenceId))?.approvals).toHaveLength(1);
  });

  test('revokes it once when two revoke it at the same moment: the other one is told so', async ({ gates }) => {
    const { record, revoke, race } = gates;
    const evidenceId = await record();
    const revokeAs = (operator: string) => () =>
      revoke(evidenceId, operator).then(
        () => 'revoked',
        ({ code }) => code,
      );
    const outcomes = await race(evidenceId, ['bo', 'cy'].map(revokeAs));
    expect(outcomes.sort()).toEqual(['revoked', 'state_conflict']);
  });

  test('leaves evidence revoked when it is approved and revoked at the same moment', async ({ gates }) => {
    const { record, approve, revoke, race, read } = gates;
    const evidenceId = await record();
    const approval = () => approve(evidenceId, 'bo').catch(() => undefined);
    await race<unknown>(evidenceId, [approval, () => revoke(evidenceId, 'cy')]);
    expect(await read(evidenceId)).toMatchObject({ revokedAt: later(2) });
  });
});
