/** Operators and their tokens: outside the local sandbox a change needs the token of the operator whom it names. */
import { createHmac } from 'node:crypto';
import type pg from 'pg';
import { expect } from 'vitest';
import type { RuntimeEnvironment } from '../../domain/runtime.ts';
import type { KeyRing } from '../../ops/keys.ts';
import { TEST_KEYS } from '../support/api.ts';
import { dumpTables, raceBehind } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import { insertGateEvidence } from '../support/gate.ts';
import { createOps, listAudit, recordKeys } from '../support/ops.ts';
import { expectUnchanged } from '../support/refusal.ts';

/** A database for each test, so that each has its first operator. */
const test = withApi()
  .extend('own', ({ newApi }) => newApi({ runtime: 'production' }))
  .extend(
    'as',
    ({ own }) =>
      (operatorToken?: string, runtime: RuntimeEnvironment = 'production') =>
        createOps(own.connection.db, { runtime, operatorToken }),
  )
  .extend('add', ({ as }) => async (name: string, by: string, token?: string): Promise<string> => {
    const args = ['operator', 'add', name, '--operator', by, '--note', 'joined', '--yes', '--json'];
    const { exitCode, printed, warned } = await as(token)(...args);
    expect([exitCode, warned]).toEqual([0, []]);
    return JSON.parse(printed.join('')).token;
  })
  .extend('ana', ({ add }) => add('ana', 'ana'))
  /** Several revocations at the same moment. */
  .extend('race', ({ own, as }) => (...revocations: readonly { token: string; by: string; name: string }[]) => {
    const tasks = revocations.map(
      ({ token, by, name }) =>
        () =>
          as(token)('operator', 'revoke', name, ...act(by)),
    );
    return raceBehind(own.connection.pool, { hold }, tasks);
  });

const APPROVE = ['gate', 'approve'];
const act = (operator: string): string[] => ['--operator', operator, '--note', 'read', '--yes'];
/** What every change of the operators waits for. */
const hold = (holder: pg.PoolClient) => holder.query(`SELECT pg_advisory_xact_lock(hashtextextended('operators', 0))`);

test('two approvals are by two tokens: one person cannot approve under two names', async ({ own, as, add, ana }) => {
  const bo = await add('bo', 'ana', ana);
  const [evidenceId = ''] = await insertGateEvidence(own.connection.db, 'production', { operators: [] });
  expect((await as(ana)(...APPROVE, evidenceId, ...act('ana'))).exitCode).toBe(0);
  expect(await as(ana)(...APPROVE, evidenceId, ...act('bo'))).toMatchObject({
    exitCode: 1,
    warned: ['OPERATOR_TOKEN is not a valid token of bo.'],
  });
  expect((await as(ana)(...APPROVE, evidenceId, ...act(' ANA '))).exitCode).toBe(1);
  expect((await as(bo)(...APPROVE, evidenceId, ...act('bo'))).exitCode).toBe(0);
  const approved = (await listAudit(own.connection.db, evidenceId)).map(({ operator }) => operator);
  expect(approved).toEqual(['ana', 'bo']);
});

test.for<[string, string | undefined]>([
  ['without a token', undefined],
  ['with an unknown token', `op_${'A'.repeat(43)}`],
  ['with the raw text of an API key', `sk_live_${'A'.repeat(49)}`],
])('a remote runtime refuses every change %s, also its preview', async ([, token], { own, as, ana }) => {
  expect(ana).toMatch(/^op_[\w-]{43}$/);
  await expectUnchanged(own.connection.pool, async () => {
    const changes = [
      ['cancel', 'stl_1'],
      ['redispatch', '--all'],
      ['retry-delivery', 'delivery'],
      ['retry-deliveries', '--org', 'org'],
      ['resolve', 'stl_1', 'paid'],
      ['refund', 'record', 'stl_1', '--amount', '1.00', '--reference', 'r'],
      ['gate', 'approve', 'evidence'],
      ['gate', 'revoke', 'evidence'],
      ['keys', 'record'],
      ['keys', 'reseal'],
      ['org', 'reissue-key', 'org'],
      ['erase', 'recipient', 'rcp'],
      ['export', 'recipient', 'rcp'],
      ['operator', 'add', 'bo'],
      ['operator', 'revoke', 'ana'],
    ];
    for (const change of changes)
      for (const args of [act('ana'), act('ana').slice(0, -1)]) {
        const { exitCode, printed, warned } = await as(token)(...change, ...args);
        expect([exitCode, printed, warned.length]).toEqual([1, [], 1]);
        expect(warned[0]).toContain('OPERATOR_TOKEN');
      }
  });
});

test('lists need no token', async ({ as }) => {
  for (const args of [['waiting'], ['gate', 'list'], ['operator', 'list'], ['list', 'audit']])
    expect((await as()(...args)).exitCode).toBe(0);
});

test('the first operator needs no token, and only the first one', async ({ as, ana }) => {
  expect(ana).toBeTruthy();
  const { exitCode, printed } = await as()('operator', 'add', 'mallory', ...act('mallory'));
  expect([exitCode, printed]).toEqual([1, []]);
});

test('the first operator has its token also when the answer to the commit is lost: without one, nobody adds another', async ({
  own,
  as,
}) => {
  const crash = (point: string): void => {
    if (point === 'operator.add:after_commit') throw new Error('Connection terminated unexpectedly');
  };
  const lost = await createOps(own.connection.db, { runtime: 'production', crash })(
    'operator',
    'add',
    'ana',
    ...act('ana'),
  );
  expect([lost.exitCode, lost.printed]).toEqual([69, []]);
  const [, token] = /unknown whether ana was added.* OPERATOR_TOKEN=(\S+)$/.exec(lost.warned[0] ?? '') ?? [];
  expect(await as(token)('operator', 'add', 'bo', ...act('ana'))).toMatchObject({ exitCode: 0, warned: [] });
});

test('of two first operators at the same moment, one is added: the other one needs a token', async ({ own, as }) => {
  const tasks = ['ana', 'mallory'].map((name) => () => as()('operator', 'add', name, ...act(name)));
  const answers = await raceBehind(own.connection.pool, { hold }, tasks);
  expect(answers.map(({ exitCode }) => exitCode).toSorted((a, b) => a - b)).toEqual([0, 1]);
  expect(JSON.parse((await as()('operator', 'list', '--json')).printed.join('')).items).toHaveLength(1);
});

test('a revoked token is refused, its name may be given again, and the last operator stays', async ({
  as,
  add,
  ana,
}) => {
  const bo = await add('bo', 'ana', ana);
  expect((await as(ana)('operator', 'revoke', 'ana', ...act('ana'))).exitCode).toBe(0);
  expect((await as(ana)('keys', 'record', ...act('ana'))).exitCode).toBe(1);
  expect((await as(bo)('operator', 'revoke', 'bo', ...act('bo'))).exitCode).toBe(1);
  const again = await add('ana', 'bo', bo);
  expect(again).not.toBe(ana);
  expect((await as(again)('keys', 'record', ...act('ana'))).exitCode).toBe(0);
  const items = JSON.parse((await as()('operator', 'list', '--json')).printed.join('')).items;
  expect(items.map(({ operator, status }: Record<string, string>) => [operator, status])).toEqual([
    ['ana', 'revoked'],
    ['bo', 'active'],
    ['ana', 'active'],
  ]);
  expect((await as(bo)('operator', 'revoke', 'ana', ...act('bo'))).exitCode).toBe(0);
  const ended = JSON.parse((await as()('operator', 'list', '--json')).printed.join('')).items;
  expect(ended.map(({ revoked_by }: Record<string, string>) => revoked_by)).toEqual(['ana', null, 'bo']);
});

test('of the last two operators, who revoke themselves at the same moment, one stays', async ({ race, add, ana }) => {
  const bo = await add('bo', 'ana', ana);
  const answers = await race({ token: ana, by: 'ana', name: 'ana' }, { token: bo, by: 'bo', name: 'bo' });
  expect(answers.map(({ exitCode }) => exitCode).toSorted((a, b) => a - b)).toEqual([0, 1]);
});

test('two operators who revoke each other at the same moment are not both revoked', async ({ race, add, ana }) => {
  const bo = await add('bo', 'ana', ana);
  await add('cy', 'ana', ana);
  const answers = await race({ token: ana, by: 'ana', name: 'bo' }, { token: bo, by: 'bo', name: 'ana' });
  expect(answers.flatMap(({ warned }) => warned)).toEqual([
    expect.stringMatching(/^OPERATOR_TOKEN is not a valid token of/),
  ]);
});

test('a name has one active token', async ({ own, as, ana }) => {
  await expectUnchanged(own.connection.pool, async () => {
    expect((await as(ana)('operator', 'add', 'Ana', ...act('ana'))).exitCode).toBe(1);
  });
});

test('only an HMAC of the token is stored, and a preview shows no token', async ({ own, as, ana }) => {
  expect(await dumpTables(own.connection.pool)).not.toContain(ana.slice(3));
  // The word keeps it apart from every other secret under this pepper. A change of it would refuse all tokens.
  const hash = createHmac('sha256', TEST_KEYS.apiKeyPeppers[0].secret).update(`operator\0${ana}`).digest();
  expect((await own.connection.pool.query('SELECT token_hash FROM operators')).rows).toEqual([{ token_hash: hash }]);
  const preview = await as(ana)('operator', 'add', 'bo', ...act('ana').slice(0, -1));
  expect([preview.exitCode, JSON.stringify(preview).includes('op_')]).toEqual([3, false]);
});

test('a token moves to the active pepper when it is used: by no preview, and to no pepper that no process has', async ({
  own,
  ana,
}) => {
  const { db } = own.connection;
  const [old] = TEST_KEYS.apiKeyPeppers;
  const young = { id: 'test-2', secret: 'another-pepper-another-pepper-another' };
  const both = { ...TEST_KEYS, apiKeyPeppers: [young, old] } as const;
  const use = (keys: KeyRing, ...rest: string[]) =>
    createOps(db, { runtime: 'production', operatorToken: ana, keys })(
      ...['keys', 'record', ...act('ana').slice(0, -1), ...rest],
    );
  const hasMoved = async () => (await use({ ...TEST_KEYS, apiKeyPeppers: [young] })).exitCode !== 1;
  expect((await use(both, '--yes')).exitCode).toBe(0);
  expect(await hasMoved()).toBe(false);
  await recordKeys(db, { ...TEST_KEYS, apiKeyPeppers: [old, young] });
  expect((await use(both)).exitCode).toBe(3);
  expect(await hasMoved()).toBe(false);
  expect((await use(both, '--yes')).exitCode).toBe(0);
  expect(await hasMoved()).toBe(true);
});

test('the local sandbox needs a token to change the operators of a database that another environment uses', async ({
  own,
  as,
  add,
  ana,
}) => {
  await add('bo', 'ana', ana);
  await own.createCaller();
  await expectUnchanged(own.connection.pool, async () => {
    for (const change of [
      ['add', 'cy'],
      ['revoke', 'bo'],
    ])
      expect(await as(undefined, 'local-sandbox')('operator', ...change, ...act('ana'))).toMatchObject({
        exitCode: 1,
        warned: [expect.stringContaining('another environment uses the database')],
      });
  });
});

test('the local sandbox takes names; a token that is set must be right', async ({ as, ana }) => {
  const record = ['keys', 'record'];
  expect((await as(undefined, 'local-sandbox')(...record, ...act('anybody'))).exitCode).toBe(0);
  expect((await as(ana, 'local-sandbox')(...record, ...act('anybody'))).exitCode).toBe(1);
  expect((await as(ana, 'local-sandbox')(...record, ...act('ana'))).exitCode).toBe(0);
});
