/** `gate`: evidence is recorded, approved and revoked, each with its audit entry. */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { eq } from 'drizzle-orm';
import { describe, expect, vi } from 'vitest';
import { listGateEvidence } from '../../db/queries/gate.ts';
import { auditEntries } from '../../db/schema/index.ts';
import { CORRIDOR_IDS } from '../../domain/corridor.ts';
import { evaluateGates } from '../../domain/gate.ts';
import { FILE, withDatabase } from '../support/fixture.ts';
import { createOps, createRemoteOps } from '../support/ops.ts';
import { expectUnchanged } from '../support/refusal.ts';

const NOW = new Date('2026-11-21T08:00:00.000Z');
const DOCUMENT = 'what was reviewed';
const DAY_MS = 86_400_000;

const test = withDatabase()
  .extend('ops', FILE, ({ connection }) =>
    createRemoteOps(connection.db, { runtime: 'remote-sandbox', now: () => NOW }, ['ana', 'bo', 'cy']),
  )
  .extend('local', FILE, ({ connection }) => createOps(connection.db, { now: () => NOW }))
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
  })
  .extend(
    'approve',
    FILE,
    ({ ops }) =>
      (evidenceId: string, operator: string) =>
        ops('gate', 'approve', evidenceId, '--operator', operator, '--note', `read by ${operator}`, '--yes'),
  );

/** @param changes the value '' leaves an option out */
const recordArgs = (directory: string, changes: Record<string, string> = {}): string[] => {
  const {
    gate = 'compliance_program',
    evidence,
    ...options
  } = { corridor: 'US-JM', evidence: 'review.txt', expires: '2027-01-31', operator: 'ana', ...changes };
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
  ['an unknown gate', 2, recording({ gate: 'compliance_programme' })],
  ['an unknown corridor', 2, recording({ corridor: 'us-jm' })],
  ['evidence that does not exist', 2, recording({ evidence: 'none.txt' })],
  ['empty evidence', 2, recording({ evidence: 'empty.txt' })],
  ['an expiry that is now', 2, recording({ expires: '2026-11-21T08:00:00Z' })],
  ['an expiry that is not a date', 2, recording({ expires: '2027-13-41' })],
  ['an expiry on a day that does not exist', 2, recording({ expires: '2027-02-30' })],
  ['an expiry at a time of a day that does not exist', 2, recording({ expires: '2027-02-29T12:00:00Z' })],
  ['an invalid operator', 2, recording({ operator: 'ana and bo' })],
  ['an environment', 2, (directory) => [...recordArgs(directory), '--environment', 'production']],
  [
    'approve with unknown evidence',
    1,
    () => ['gate', 'approve', 'no-such-id', '--operator', 'bo', '--note', 'read', '--yes'],
  ],
  ['list with an unknown corridor', 2, () => ['gate', 'list', '--corridor', 'XX-YY']],
])('%s exits with %i, and writes nothing', async ([, exitCode, argsOf], { connection, ops, directory }) => {
  await expectUnchanged(connection.pool, async () => {
    const result = await ops(...argsOf(directory));
    expect(result).toMatchObject({ exitCode, printed: [] });
    expect(result.warned).not.toEqual([]);
  });
});

test.for([-2, 2])(
  'an expiry is judged by the clock of the database, where that of the machine is off by %s days',
  async (daysAhead, { connection, directory }) => {
    const ops = createOps(connection.db);
    const record = async (fromNowMs: number): Promise<number> => {
      const expires = new Date(Date.now() + fromNowMs).toISOString();
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + daysAhead * DAY_MS });
      const args = recordArgs(directory, { corridor: 'US-TT', expires });
      return (await ops(...args).finally(() => vi.useRealTimers())).exitCode;
    };
    await expectUnchanged(connection.pool, async () => expect(await record(-DAY_MS)).toBe(2));
    expect(await record(DAY_MS)).toBe(0);
  },
);

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

test('the document of a gate is looked for in the folder where its caller called npm', async ({
  ops,
  directory,
  onTestFinished,
}) => {
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv('INIT_CWD', directory);
  const args = recordArgs('', { corridor: 'GB-JM' });
  expect(args).toContain('review.txt');
  expect((await ops(...args)).exitCode).toBe(0);
});

test('evidence is recorded, approved by two operators, listed as open and revoked, each with its audit entry', async ({
  connection,
  ops,
  record,
  approve,
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
    expect((await approve(evidenceId, operator)).exitCode).toBe(0);
    expect((await approve(evidenceId, ` ${operator.toUpperCase()} `)).exitCode).toBe(1);
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
  expect(listed.gates).toContainEqual({ gate: 'dispute_accounting', is_open: true, reason: null, is_forgiven: false });
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
  const revoked = await ops('gate', 'revoke', evidenceId, '--operator', 'cy', '--note', note, '--yes');
  expect(revoked).toMatchObject({ exitCode: 0, printed: [`${evidenceId} revoked by cy; its gate is closed.`] });
  expect((await ops('gate', 'explain', 'CA-TT')).printed).toContain(
    `  dispute_accounting: closed, revoked: evidence ${evidenceId} (review.txt) was revoked ${NOW.toISOString()}`,
  );
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

test('revoking evidence that newer evidence has replaced says that its gate is as open as before', async ({
  ops,
  record,
  approve,
}) => {
  const ofGate = { gate: 'provider_evidence', corridor: 'US-TT' };
  const [older, newer] = [await record(ofGate), await record(ofGate)];
  const revoke = (...rest: string[]) => ops('gate', 'revoke', older, '--operator', 'cy', '--note', 'old', ...rest);
  expect((await revoke()).printed[0]).toContain('its gate is closed, not_approved.');
  for (const operator of ['ana', 'bo']) await approve(newer, operator);
  expect((await revoke('--yes')).printed).toEqual([
    `${older} revoked by cy; newer evidence decides: its gate is open.`,
  ]);
});

test('the list of every corridor shows a gate as closed that is open in one corridor only', async ({
  ops,
  record,
  approve,
}) => {
  expect(CORRIDOR_IDS.length).toBeGreaterThan(1);
  const evidenceId = await record({ gate: 'ledger_reconciliation', corridor: 'US-KY' });
  for (const operator of ['ana', 'bo']) await approve(evidenceId, operator);
  const { printed } = await ops('gate', 'list');
  expect(printed).toContain('  ledger_reconciliation: closed, no_evidence');
  const isListed = (lines: readonly string[]) => lines.some((line) => line.startsWith(evidenceId));
  expect([isListed(printed), isListed((await ops('gate', 'list', '--corridor', 'CA-TT')).printed)]).toEqual([
    true,
    false,
  ]);
});

describe('the gates of the local sandbox', () => {
  test('gate list says which closed gates are forgiven', async ({ local }) => {
    const { printed } = await local('gate', 'list', '--corridor', 'US-HT');
    expect(printed).toContain('  compliance_program: closed, no_evidence (forgiven in the local sandbox)');
    const { gates } = JSON.parse((await local('gate', 'list', '--corridor', 'US-HT', '--json')).printed.join(''));
    const closed = { is_open: false, reason: 'no_evidence', is_forgiven: true };
    expect(gates).toContainEqual({ gate: 'compliance_program', ...closed });
  });

  test('recording evidence says first that it closes what works, and gate explain says what a settlement meets', async ({
    local,
    directory,
  }) => {
    const explain = async () => (await local('gate', 'explain', 'US-HT')).printed;
    const explained = async () => JSON.parse((await local('gate', 'explain', 'US-HT', '--json')).printed.join(''));
    const recording = recordArgs(directory, { gate: 'rail_admission', corridor: 'US-HT' });
    const closes =
      'This closes rail_admission, which lets settlements on US-HT through now: they are refused until 2 operators ' +
      'have approved the new evidence.';
    expect((await explain())[0]).toBe('A settlement on US-HT would be accepted in local sandbox.');
    const preview = await local(...recording.filter((word) => word !== '--yes'));
    expect([preview.exitCode, preview.warned[0]]).toEqual([3, closes]);
    expect((await explained()).would_be_accepted).toBe(true);

    const recorded = await local(...recording, '--json');
    expect([recorded.exitCode, recorded.warned]).toEqual([0, [closes]]);
    const { evidence_id: evidenceId } = JSON.parse(recorded.printed.join(''));
    const again = await local(...recording.filter((word) => word !== '--yes'));
    expect(again.warned).toEqual([expect.stringMatching(/^Nothing was changed/)]);
    const refused = await explain();
    expect(refused[0]).toBe('A settlement on US-HT would be refused in local sandbox: 503 launch_gates_closed.');
    expect(refused).toContain(
      `  rail_admission: closed, not_approved: evidence ${evidenceId} (review.txt) has 0 of 2 approvals`,
    );

    const revoke = ['gate', 'revoke', evidenceId, '--operator', 'ana', '--note', 'why', '--yes'];
    expect((await local(...revoke)).printed[0]).toContain('which the local sandbox forgives.');
    expect(await explained()).toMatchObject({ would_be_accepted: true, corridor: 'US-HT' });
  });
});

test('gate explain in a remote runtime: nothing is forgiven', async ({ ops }) => {
  const { exitCode, printed } = await ops('gate', 'explain', 'US-HT');
  expect(exitCode).toBe(0);
  expect(printed).toHaveLength(7);
  expect(printed[0]).toBe('A settlement on US-HT would be refused in remote sandbox: 503 launch_gates_closed.');
  expect(printed).toContain('  compliance_program: closed, no_evidence: no evidence is recorded');
});
