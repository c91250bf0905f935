/** `gate`: evidence is recorded, approved and revoked, each with its audit entry. */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { listGateEvidence } from '../../db/queries/gate.ts';
import { auditEntries } from '../../db/schema/index.ts';
import { CORRIDOR_IDS } from '../../domain/corridor.ts';
import { evaluateGates } from '../../domain/gate.ts';
import { digestTables } from '../support/database.ts';
import { FILE, withDatabase } from '../support/fixture.ts';
import { createOps } from '../support/ops.ts';

const NOW = new Date('2026-11-21T08:00:00.000Z');
const DOCUMENT = 'what was reviewed';

const test = withDatabase()
  .extend('ops', FILE, ({ connection }) => createOps(connection.db, { runtime: 'remote-sandbox', now: () => NOW }))
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  .extend('directory', FILE, ({}, { onCleanup }) => {
    const directory = mkdtempSync(path.join(os.tmpdir(), 'ops-'));
    onCleanup(() => rmSync(directory, { recursive: true }));
    writeFileSync(path.join(directory, 'review.txt'), DOCUMENT);
    writeFileSync(path.join(directory, 'empty.txt'), '');
    return directory;
  })
  .extend('record', FILE, ({ ops, directory }) => async (changes: Record<string, string> = {}): Promise<string> => {
    const { exitCode, printed } = await ops(...recordArgs(directory, changes), '--json');
    expect(exitCode).toBe(0);
    return JSON.parse(printed[0] ?? '').evidence_id;
  });

/** @param changes the value '' leaves an option out */
const recordArgs = (directory: string, changes: Record<string, string> = {}): string[] => {
  const {
    gate = 'compliance_program',
    evidence,
    ...options
  } = {
    corridor: 'US-JM',
    evidence: 'review.txt',
    expires: '2027-01-31',
    operator: 'ana',
    ...changes,
  };
  const given = { ...options, evidence: evidence === '' ? '' : path.join(directory, evidence) };
  return [
    'gate',
    'record',
    gate,
    ...Object.entries(given).flatMap(([name, value]) => (value === '' ? [] : [`--${name}`, value])),
    '--yes',
  ];
};

type ArgsOf = (directory: string) => string[];
const recording =
  (changes: Record<string, string>): ArgsOf =>
  (directory) =>
    recordArgs(directory, changes);

test.for<[string, number, ArgsOf]>([
  ['no command', 2, () => []],
  ['an unknown command', 2, () => ['gates']],
  ['an unknown command of gate', 2, () => ['gate', 'open', 'compliance_program']],
  ['an unknown gate', 2, recording({ gate: 'compliance_programme' })],
  ['an unknown corridor', 2, recording({ corridor: 'us-jm' })],
  ['no corridor', 2, recording({ corridor: '' })],
  ['no evidence', 2, recording({ evidence: '' })],
  ['evidence that does not exist', 2, recording({ evidence: 'none.txt' })],
  ['empty evidence', 2, recording({ evidence: 'empty.txt' })],
  ['no expiry', 2, recording({ expires: '' })],
  ['an expiry that is now', 2, recording({ expires: '2026-11-21T08:00:00Z' })],
  ['an expiry that is not a date', 2, recording({ expires: '2027-13-41' })],
  ['no operator', 2, recording({ operator: '' })],
  ['an invalid operator', 2, recording({ operator: 'ana and bo' })],
  ['an environment', 2, (directory) => [...recordArgs(directory), '--environment', 'production']],
  ['two gates', 2, (directory) => [...recordArgs(directory), 'rail_admission']],
  ['approve without evidence', 2, () => ['gate', 'approve', '--operator', 'bo', '--note', 'read']],
  [
    'approve with unknown evidence',
    1,
    () => ['gate', 'approve', 'no-such-id', '--operator', 'bo', '--note', 'read', '--yes'],
  ],
  ['approve without a note', 2, () => ['gate', 'approve', 'no-such-id', '--operator', 'bo']],
  ['revoke with an empty note', 2, () => ['gate', 'revoke', 'no-such-id', '--operator', 'bo', '--note', ' ']],
  ['list with an unknown corridor', 2, () => ['gate', 'list', '--corridor', 'XX-YY']],
])('%s exits with %i, and writes nothing', async ([, exitCode, argsOf], { connection, ops, directory }) => {
  const before = await digestTables(connection.pool);
  const result = await ops(...argsOf(directory));
  expect(result).toMatchObject({ exitCode, printed: [] });
  expect(result.warned).not.toEqual([]);
  expect(await digestTables(connection.pool)).toEqual(before);
});

test('all faults of a command line are reported at once, with a pointer to the help', async ({ ops }) => {
  const { exitCode, warned } = await ops('gate', 'record', 'nonsense');
  expect(exitCode).toBe(2);
  expect(warned).toEqual([
    expect.stringContaining('<gate> must be one of compliance_program, '),
    '--corridor is required.',
    '--evidence is required.',
    '--expires is required.',
    '--operator is required.',
    'See npm run ops -- gate record --help',
  ]);
});

test('a second approval by the same operator in another spelling is refused', async ({ connection, ops, record }) => {
  const evidenceId = await record();
  expect((await ops('gate', 'approve', evidenceId, '--operator', 'bo', '--note', 'read', '--yes')).exitCode).toBe(0);
  const before = await digestTables(connection.pool);
  const { exitCode, warned } = await ops(
    'gate',
    'approve',
    evidenceId,
    '--operator',
    ' BO ',
    '--note',
    'read again',
    '--yes',
  );
  expect([exitCode, warned.join('')]).toEqual([1, expect.stringContaining('state_conflict')]);
  expect(await digestTables(connection.pool)).toEqual(before);
});

test('evidence is recorded, approved twice, listed as open and revoked, each with its audit entry', async ({
  connection,
  ops,
  record,
}) => {
  const environment = 'remote sandbox';
  const reasonOf = async () => {
    const evidence = await listGateEvidence(connection.db, environment, 'CA-TT');
    const verdicts = evaluateGates(evidence, { environment, corridors: ['CA-TT'] }, NOW);
    return verdicts.find(({ gate }) => gate === 'dispute_accounting')?.reason;
  };
  const evidenceId = await record({ gate: 'dispute_accounting', corridor: 'CA-TT' });
  const reasons = [await reasonOf()];
  for (const operator of ['ana', 'bo']) {
    const approved = await ops(
      'gate',
      'approve',
      evidenceId,
      '--operator',
      operator,
      '--note',
      `read by ${operator}`,
      '--yes',
    );
    expect(approved.exitCode).toBe(0);
    reasons.push(await reasonOf());
  }
  const { exitCode, printed } = await ops('gate', 'list', '--corridor', 'CA-TT');
  expect(exitCode).toBe(0);
  expect(printed).toContain('  dispute_accounting: open');
  expect(printed).toContain('  compliance_program: closed, no_evidence');
  const sha256 = createHash('sha256').update(DOCUMENT).digest('hex');
  expect(printed.at(-1)).toBe(
    [
      `${evidenceId} dispute_accounting CA-TT`,
      `sha256:${sha256} review.txt`,
      'recorded by ana, approved by ana and bo',
      'expires 2027-01-31T00:00:00.000Z',
    ].join('; '),
  );
  const listed = JSON.parse((await ops('gate', 'list', '--corridor', 'CA-TT', '--json')).printed[0] ?? '');
  expect(listed.gates).toContainEqual({ gate: 'dispute_accounting', is_open: true, reason: null });
  expect(listed.evidence).toEqual([
    {
      evidence_id: evidenceId,
      gate: 'dispute_accounting',
      corridor: 'CA-TT',
      sha256,
      reference: 'review.txt',
      recorded_by: 'ana',
      approved_by: ['ana', 'bo'],
      expires_at: '2027-01-31T00:00:00.000Z',
      revoked_at: null,
    },
  ]);
  const note = 'the review was of another year';
  expect((await ops('gate', 'revoke', evidenceId, '--operator', 'cy', '--note', note, '--yes')).exitCode).toBe(0);
  reasons.push(await reasonOf());
  expect(reasons).toEqual(['not_approved', 'not_approved', null, 'revoked']);
  const audit = await connection.db.select().from(auditEntries).where(eq(auditEntries.objectId, evidenceId));
  expect(audit.map((entry) => [entry.action, entry.operator, entry.note])).toEqual([
    ['gate_record', 'ana', `dispute_accounting CA-TT in remote sandbox until 2027-01-31T00:00:00.000Z: review.txt`],
    ['gate_approve', 'ana', 'read by ana'],
    ['gate_approve', 'bo', 'read by bo'],
    ['gate_revoke', 'cy', note],
  ]);
});

test('the list of every corridor shows a gate as closed that is open in one corridor only', async ({ ops, record }) => {
  expect(CORRIDOR_IDS.length).toBeGreaterThan(1);
  const evidenceId = await record({ gate: 'ledger_reconciliation', corridor: 'US-KY' });
  for (const operator of ['ana', 'bo'])
    await ops('gate', 'approve', evidenceId, '--operator', operator, '--note', 'read', '--yes');
  const { printed } = await ops('gate', 'list');
  expect(printed).toContain('  ledger_reconciliation: closed, no_evidence');
  expect(printed.some((line) => line.startsWith(evidenceId))).toBe(true);
});
