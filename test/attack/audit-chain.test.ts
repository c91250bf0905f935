/**
 * The chain of audit entries: whoever edits, deletes, moves, inserts or cuts off entries, even as a superuser, is
 * noticed by `audit verify`.
 */
import { describe, expect } from 'vitest';
import { insertAuditEntries, insertAuditEntry } from '../../db/queries/audit.ts';
import { withDatabase } from '../support/fixture.ts';
import { createOps } from '../support/ops.ts';

const AT = new Date('2026-11-23T10:00:00.123Z');
const ENTRIES = 6;
const entry = (note: string) =>
  ({ objectId: 'operator:bo', action: 'operator_add', operator: 'ana', note, at: AT }) as const;

const test = withDatabase()
  .extend('verify', ({ connection }) => {
    const ops = createOps(connection.db);
    return async (...args: string[]) => {
      const { exitCode, printed, warned } = await ops('audit', 'verify', '--json', ...args);
      return { exitCode, warned, ...JSON.parse(printed[0] ?? 'null') };
    };
  })
  /** Runs a statement that neither triggers nor constraints stop. */
  .extend('tamper', ({ owner }) => async (...statements: string[]) => {
    const client = await owner.pool.connect();
    try {
      await client.query('BEGIN');
      await client.query('ALTER TABLE audit_entries DISABLE TRIGGER USER');
      await client.query('DROP INDEX IF EXISTS audit_entries_sequence');
      for (const statement of statements) await client.query(statement);
      await client.query('ALTER TABLE audit_entries ENABLE TRIGGER USER');
      await client.query('COMMIT');
    } finally {
      client.release();
    }
  });

test.beforeEach(async ({ connection, tamper }) => {
  await tamper('DELETE FROM audit_entries');
  await connection.db.transaction((tx) => insertAuditEntry(tx, null, entry('entry 1')));
  const rest = Array.from({ length: ENTRIES - 1 }, (_, n) => ({ ...entry(`entry ${n + 2}`), orgId: null }));
  await connection.db.transaction((tx) => insertAuditEntries(tx, rest));
});

test('an intact chain is intact, also with texts of every kind', async ({ connection, verify }) => {
  for (const note of ['"quoted" \\ and\nnew lines', 'é, é and 🙂', 'half a \ud83d character', ''])
    await connection.db.transaction((tx) => insertAuditEntry(tx, null, entry(note)));
  expect(await verify()).toMatchObject({ exitCode: 0, intact: true, entries: ENTRIES + 4, faults: [] });
});

test('an empty chain ends with its genesis, which can be expected later', async ({ connection, tamper, verify }) => {
  await tamper('DELETE FROM audit_entries');
  const { last_hash: genesis } = await verify();
  expect(genesis).toBe('f24991b6ab681836ebc57a67507d993d70c66f1746872463b11b28cf7ba4d53d');
  await connection.db.transaction((tx) => insertAuditEntry(tx, null, entry('the first')));
  expect(await verify('--expect', genesis)).toMatchObject({ exitCode: 0, entries: 1, expected_at: 0 });
});

test('writers at the same time form one chain, and one that is rolled back leaves no gap', async ({
  connection,
  verify,
}) => {
  const write = (n: number) =>
    connection.db
      .transaction(async (tx) => {
        await insertAuditEntry(tx, null, entry(`writer ${n}`));
        if (n % 3 === 0) throw new Error('rolled back');
      })
      .catch(() => undefined);
  await Promise.all(Array.from({ length: 30 }, (_, n) => write(n)));
  expect(await verify()).toMatchObject({ exitCode: 0, intact: true, entries: ENTRIES + 20, faults: [] });
});

describe('as a superuser', () => {
  test.for<[string, string[], RegExp[]]>([
    ['an edited note', [`UPDATE audit_entries SET note = 'another' WHERE sequence = 3`], [/^Entry 3 .*changed/]],
    ['another operator', [`UPDATE audit_entries SET operator = 'bo' WHERE sequence = 6`], [/^Entry 6 .*changed/]],
    ['another time', [`UPDATE audit_entries SET at = at + interval '1 ms' WHERE sequence = 1`], [/^Entry 1 .*changed/]],
    ['a deleted first entry', ['DELETE FROM audit_entries WHERE sequence = 1'], [/^Entry 2 .*follows entry 0: 1 /]],
    ['two deleted entries', ['DELETE FROM audit_entries WHERE sequence IN (3, 4)'], [/^Entry 5 .*follows entry 2: 2 /]],
    [
      'a deleted entry, with the later ones counted down',
      ['DELETE FROM audit_entries WHERE sequence = 5', 'UPDATE audit_entries SET sequence = 5 WHERE sequence = 6'],
      [/^Entry 5 .*does not have the hash of the entry before/, /^Entry 5 .*changed/],
    ],
    [
      'two entries that changed places',
      ['UPDATE audit_entries SET sequence = 7 - sequence WHERE sequence IN (3, 4)'],
      [
        /^Entry 3 .*hash of the entry before/,
        /^Entry 3 .*changed/,
        /^Entry 4 .*before/,
        /^Entry 4 .*changed/,
        /^Entry 5 .*before/,
      ],
    ],
    [
      'an entry that is there twice',
      [
        `INSERT INTO audit_entries (audit_id, object_id, action, operator, note, at, sequence, previous_hash, hash)
         SELECT 'zzz', object_id, action, operator, note, at, sequence, previous_hash, hash
         FROM audit_entries WHERE sequence = 2`,
      ],
      [/^Entry 2 \(zzz\) has the number/, /^Entry 2 \(zzz\) was changed/],
    ],
    [
      'an entry that is added at the end',
      [
        `INSERT INTO audit_entries (audit_id, object_id, action, operator, note, at, sequence, previous_hash, hash)
         SELECT 'zzz', object_id, action, operator, note, at, 7, hash, hash FROM audit_entries WHERE sequence = 6`,
      ],
      [/^Entry 7 \(zzz\) was changed/],
    ],
  ])('%s is noticed', async ([_what, statements, faults], { tamper, verify }) => {
    await tamper(...statements);
    const found = await verify();
    expect([found.exitCode, found.intact]).toEqual([1, false]);
    expect(found.faults).toEqual(faults.map((fault) => expect.stringMatching(fault)));
    expect(found.warned).toEqual(found.faults);
  });

  test('more than twenty faults are counted, and the first twenty are shown', async ({
    connection,
    tamper,
    verify,
  }) => {
    const more = Array.from({ length: 30 }, (_, n) => ({ ...entry(`more ${n}`), orgId: null }));
    await connection.db.transaction((tx) => insertAuditEntries(tx, more));
    await tamper(`UPDATE audit_entries SET note = note || '!' WHERE sequence > 6`);
    const { faults, warned } = await verify();
    expect(faults).toHaveLength(20);
    expect(warned.at(-1)).toBe('10 more faults are not shown.');
  });

  test('entries that are cut off at the end are noticed by the last hash', async ({ tamper, verify }) => {
    const { last_hash: kept } = await verify();
    expect(await verify('--expect', kept)).toMatchObject({ exitCode: 0, expected_at: ENTRIES });
    await tamper('DELETE FROM audit_entries WHERE sequence > 4');
    expect(await verify()).toMatchObject({ exitCode: 0, intact: true, entries: 4 });
    expect(await verify('--expect', kept)).toMatchObject({
      exitCode: 1,
      intact: false,
      warned: [expect.stringContaining('No entry has the expected hash')],
    });
  });
});

test('--expect takes a hash and nothing else', async ({ connection }) => {
  const { exitCode, warned } = await createOps(connection.db)('audit', 'verify', '--expect', 'abc');
  expect([exitCode, warned[0]]).toEqual([2, expect.stringContaining('--expect')]);
});
