import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Connection, connect } from '../../db/client.ts';
import { listGateEvidence } from '../../db/queries/gate.ts';
import { auditEntries } from '../../db/schema/index.ts';
import { CORRIDOR_IDS } from '../../domain/corridor.ts';
import { evaluateGates } from '../../domain/gate.ts';
import { runOps } from '../../ops/main.ts';
import { TEST_KEYS } from '../support/api.ts';
import { digestTables } from '../support/database.ts';
import { createTestDatabase } from '../support/postgres.ts';

const NOW = new Date('2026-11-21T08:00:00.000Z');
const DOCUMENT = 'what was reviewed';

let connection: Connection;
let drop: () => Promise<void>;
let directory: string;
let file: string;
let printed: string[];

beforeAll(async () => {
  const database = await createTestDatabase();
  drop = database.drop;
  connection = connect(database.databaseUrl, { poolSizeMax: 2, name: 'test', onIdleError: () => undefined });
  directory = mkdtempSync(path.join(os.tmpdir(), 'ops-'));
  file = path.join(directory, 'review.txt');
  writeFileSync(file, DOCUMENT);
  writeFileSync(path.join(directory, 'empty.txt'), '');
});
afterAll(async () => {
  rmSync(directory, { recursive: true });
  await connection.close();
  await drop();
});
beforeEach(() => {
  printed = [];
});

const noTemporal = () => {
  throw new Error('gates need no Temporal');
};
const ops = (...args: string[]) =>
  runOps(
    {
      runtime: 'remote-sandbox',
      db: connection.db,
      keys: TEST_KEYS,
      client: noTemporal,
      now: () => NOW,
      print: (...line: string[]) => printed.push(line.join('\n')),
    },
    args,
  );
const recordArgs = (changes: Record<string, string> = {}) => {
  const { gate = 'compliance_program', ...options } = {
    corridor: 'US-JM',
    evidence: file,
    expires: '2027-01-31',
    operator: 'ana',
    ...changes,
  };
  return [
    'gate',
    'record',
    gate,
    ...Object.entries(options).flatMap(([name, value]) => (value === '' ? [] : [`--${name}`, value])),
  ];
};

/** @returns the id of the new evidence */
async function record(changes: Record<string, string> = {}): Promise<string> {
  expect(await ops(...recordArgs(changes))).toBe(0);
  return printed.at(-1)?.split(' ')[0] ?? '';
}

describe('is refused with 1, and nothing is written:', () => {
  test.each([
    ['no command', []],
    ['an unknown noun', ['gates']],
    ['an unknown verb', ['gate', 'open', 'compliance_program']],
    ['an unknown gate', () => recordArgs({ gate: 'compliance_programme' })],
    ['an unknown corridor', () => recordArgs({ corridor: 'us-jm' })],
    ['no corridor', () => recordArgs({ corridor: '' })],
    ['no evidence', () => recordArgs({ evidence: '' })],
    ['evidence that is not there', () => recordArgs({ evidence: path.join(directory, 'none.txt') })],
    ['empty evidence', () => recordArgs({ evidence: path.join(directory, 'empty.txt') })],
    ['no expiry', () => recordArgs({ expires: '' })],
    ['an expiry that is now', () => recordArgs({ expires: '2026-11-21T08:00:00Z' })],
    ['an expiry that is no date', () => recordArgs({ expires: '2027-13-41' })],
    ['no operator', () => recordArgs({ operator: '' })],
    ['an operator that is no name', () => recordArgs({ operator: 'ana and bo' })],
    ['an environment, which is the configured one alone', () => [...recordArgs(), '--environment', 'production']],
    ['two gates at once', () => [...recordArgs(), 'rail_admission']],
    ['approving nothing', ['gate', 'approve', '--operator', 'bo', '--note', 'read']],
    ['approving what is not there', ['gate', 'approve', 'no-such-id', '--operator', 'bo', '--note', 'read']],
    ['approving without a note', ['gate', 'approve', 'no-such-id', '--operator', 'bo']],
    ['revoking without a reason', ['gate', 'revoke', 'no-such-id', '--operator', 'bo', '--note', ' ']],
    ['a list of an unknown corridor', ['gate', 'list', '--corridor', 'XX-YY']],
  ] as const)('%s', async (_what, args: readonly string[] | (() => string[])) => {
    const before = await digestTables(connection.pool);
    expect(await ops(...(typeof args === 'function' ? args() : args))).toBe(1);
    expect(printed).not.toEqual([]);
    expect(await digestTables(connection.pool)).toEqual(before);
  });

  test('every fault is told at once, with how it is done', async () => {
    expect(await ops('gate', 'record', 'nonsense')).toBe(1);
    expect(printed.slice(0, 5).map((line) => line.split(' ').slice(0, 2).join(' '))).toEqual([
      'The gate',
      'The corridor',
      '--evidence must',
      '--expires must',
      '--operator must',
    ]);
    expect(printed.join('\n')).toContain('npm run ops -- gate record <gate> --corridor');
  });

  test('an operator who approves a second time, under another spelling', async () => {
    const evidenceId = await record();
    expect(await ops('gate', 'approve', evidenceId, '--operator', 'bo', '--note', 'read')).toBe(0);
    const before = await digestTables(connection.pool);
    expect(await ops('gate', 'approve', evidenceId, '--operator', ' BO ', '--note', 'read again')).toBe(1);
    expect(printed.at(-1)).toContain('state_conflict');
    expect(await digestTables(connection.pool)).toEqual(before);
  });
});

test('recorded, approved by two, listed as open, revoked: each act with its audit entry', async () => {
  const environment = 'remote sandbox';
  const reasonOf = async () => {
    const verdicts = evaluateGates(
      await listGateEvidence(connection.db, environment, 'CA-TT'),
      { environment, corridors: ['CA-TT'] },
      NOW,
    );
    return verdicts.find(({ gate }) => gate === 'dispute_accounting')?.reason;
  };
  const evidenceId = await record({ gate: 'dispute_accounting', corridor: 'CA-TT' });
  const reasons = [await reasonOf()];
  for (const operator of ['ana', 'bo']) {
    expect(await ops('gate', 'approve', evidenceId, '--operator', operator, '--note', `read by ${operator}`)).toBe(0);
    reasons.push(await reasonOf());
  }
  printed = [];
  expect(await ops('gate', 'list', '--corridor', 'CA-TT')).toBe(0);
  expect(printed).toContain('  dispute_accounting: open');
  expect(printed).toContain('  compliance_program: closed, no_evidence');
  const digest = createHash('sha256').update(DOCUMENT).digest('hex');
  expect(printed.at(-1)).toBe(
    `${evidenceId} dispute_accounting CA-TT; sha256:${digest} review.txt; recorded by ana, approved by ana and bo; expires 2027-01-31T00:00:00.000Z`,
  );
  expect(await ops('gate', 'revoke', evidenceId, '--operator', 'cy', '--note', 'the review was of another year')).toBe(
    0,
  );
  reasons.push(await reasonOf());
  expect(reasons).toEqual(['not_approved', 'not_approved', null, 'revoked']);
  const audit = (await connection.db.select().from(auditEntries)).filter(({ objectId }) => objectId === evidenceId);
  expect(audit.map(({ action, operator, note }) => [action, operator, note])).toEqual([
    ['gate_record', 'ana', `dispute_accounting CA-TT in remote sandbox until 2027-01-31T00:00:00.000Z: review.txt`],
    ['gate_approve', 'ana', 'read by ana'],
    ['gate_approve', 'bo', 'read by bo'],
    ['gate_revoke', 'cy', 'the review was of another year'],
  ]);
});

test('the list of every corridor shows a gate as closed that is open in one alone', async () => {
  expect(CORRIDOR_IDS.length).toBeGreaterThan(1);
  const evidenceId = await record({ gate: 'ledger_reconciliation', corridor: 'US-KY' });
  for (const operator of ['ana', 'bo'])
    await ops('gate', 'approve', evidenceId, '--operator', operator, '--note', 'read');
  printed = [];
  await ops('gate', 'list');
  expect(printed).toContain('  ledger_reconciliation: closed, no_evidence');
  expect(printed.some((line) => line.startsWith(evidenceId))).toBe(true);
});
