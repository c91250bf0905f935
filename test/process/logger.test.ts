/** What the log has of an error: enough to find its cause, and nothing that a caller sent. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { text as readText } from 'node:stream/consumers';
import { DrizzleQueryError } from 'drizzle-orm';
import pg from 'pg';
import { expect, test } from 'vitest';
import { repositoryRoot } from '../../process/local/place.ts';
import { createLogger, describeError } from '../../process/logger.ts';
import { stretched } from '../support/patience.ts';

const SECRET = 'Marcia\n    at Secretive (file.ts:1:1)';

function refusedInsert(): Error {
  const error = new pg.DatabaseError(`value ${SECRET}`, 1, 'error');
  const refused = { code: '23505', table: 'recipients', constraint: 'recipients_pkey', routine: '_bt_check_unique' };
  Object.assign(error, refused, { detail: `Key (name)=(${SECRET}) exists.`, where: SECRET, hint: SECRET });
  return new DrizzleQueryError(`INSERT '${SECRET}'`, [SECRET], error);
}

test.for<[what: string, error: unknown, shown: Record<string, unknown>]>([
  [
    'an error of PostgreSQL: SQLSTATE, table, constraint and routine',
    refusedInsert(),
    { kind: 'error', code: '23505', table: 'recipients', constraint: 'recipients_pkey', routine: '_bt_check_unique' },
  ],
  [
    'a failed request: the code and the kinds of its causes',
    new TypeError(SECRET, { cause: Object.assign(new Error(SECRET), { code: 'ECONNREFUSED' }) }),
    { kind: 'TypeError', code: 'ECONNREFUSED', causes: ['Error'] },
  ],
  ['any other error: its kind', new RangeError(SECRET), { kind: 'RangeError' }],
])('the log has of %s, its place, and no value', ([_what, error, shown]) => {
  const { place, ...described } = describeError(error);
  expect(described).toEqual(shown);
  expect(JSON.stringify(place)).toContain('logger.test.ts');
  expect(JSON.stringify([place, described])).not.toContain('Secretive');
});

test('the log has the type of what is no error, and no value', () => {
  expect(describeError(SECRET)).toEqual({ kind: 'string' });
});

/** Of the bodies of requests and answers. */
const SECRET_FIELDS = [
  ...['api_key', 'secret', 'account_number', 'card_token', 'banklink_account_token'],
  ...['sandbox_code', 'access_token', 'sdk_access_token'],
];

test('a line has no value of a field that is secret, and of an error only what is safe', () => {
  const lines: string[] = [];
  const log = createLogger({ level: 'info', name: 'test' }, { write: (line) => void lines.push(line) });
  const headers = { authorization: SECRET, 'x-api-key': SECRET };
  const body = Object.fromEntries(SECRET_FIELDS.map((name) => [name, SECRET]));
  log.info({ ...headers, headers, body }, 'a line');
  log.error({ err: new Error(SECRET) }, 'another line');
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['a line', 'another line']);
  expect(lines.join()).not.toContain('Marcia');
});

test('of a chain of errors that cause each other the log has the first five', () => {
  const one = new Error(SECRET);
  one.cause = new TypeError(SECRET, { cause: one });
  expect(describeError(one)['causes']).toEqual(['TypeError', 'Error', 'TypeError', 'Error']);
});

test('a disk that is full costs lines of the log: the process goes on, and ends in order at SIGTERM', async () => {
  const code = `
    import { createLogger } from './process/logger.ts';
    import { closeInOrder } from './process/shutdown.ts';
    const log = createLogger({ level: 'info', name: 'test' });
    closeInOrder({ timeoutMs: 30_000, log: { error: (_fields, message) => console.error(message) } }, []);
    for (let line = 0; line < 10; line += 1) {
      log.info('line');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    process.kill(process.pid, 'SIGTERM');
    setInterval(() => undefined, 1_000);`;
  const full = openSync('/dev/full', 'w');
  const started = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', code], {
    ...{ cwd: repositoryRoot, stdio: ['ignore', full, 'pipe'] },
    ...{ timeout: stretched(30_000), killSignal: 'SIGKILL' },
  });
  const [said, [exitCode]] = await Promise.all([
    readText(started.stderr ?? expect.unreachable()),
    once(started, 'exit'),
  ]);
  closeSync(full);
  expect([exitCode, said.trim()]).toEqual([0, '']);
});
