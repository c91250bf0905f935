/** A process whose keys are not those of the stored data does not start. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { execa } from 'execa';
import { expect, vi } from 'vitest';
import { connect, isUnavailable } from '../../db/client.ts';
import { addPartitions } from '../../db/queries/retention.ts';
import { checkServiceKeys, findForeignKeys } from '../../db/queries/service-key.ts';
import { createSealer } from '../../db/seal.ts';
import { createKeyCheck } from '../../process/key-check.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { TEST_SECRETS } from '../support/api.ts';
import { withApi } from '../support/fixture.ts';
import { dropComingMonths } from '../support/months.ts';
import { createRecipient } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { testPrograms } from '../support/program.ts';

const test = withApi();

const key = (id: string) => ({ id, key: randomBytes(32) });
const now = new Date();
type Key = ReturnType<typeof key>;
const keysOf = (encryption: readonly Key[], signing: Key, peppers: readonly Key[] = []) => ({
  ENCRYPTION_KEYS: encryption,
  CERTIFICATE_SIGNING_KEY: [signing],
  API_KEY_PEPPER: peppers,
});

test('a key under the name of another one is refused, and a new name is not', async ({ newApi }) => {
  const { connection } = await newApi();
  const [a, b, signing] = [key('a'), key('b'), key('s')];
  const check = (encryption: (typeof a)[]) => checkServiceKeys(connection.db, keysOf(encryption, signing), now);
  expect(await check([a])).toEqual([]);
  expect(await check([b, a])).toEqual([]);
  expect(await check([{ ...a, key: b.key }, b])).toEqual([
    'ENCRYPTION_KEYS has another key under the id a than processes before',
  ]);
});

test('keys that are recorded are compared without a write: a process also starts while the database only reads', async ({
  newApi,
}) => {
  const { owner, connection, databaseUrl } = await newApi();
  const keys = keysOf([key('a')], key('s'), [key('pepper')]);
  expect(await checkServiceKeys(connection.db, keys, now)).toEqual([]);
  const name = new URL(databaseUrl).pathname.slice(1);
  await owner.pool.query(`ALTER DATABASE "${name}" SET default_transaction_read_only = on`);
  const reading = connect(databaseUrl, { poolSizeMax: 1, name: 'test', onIdleError: () => undefined });
  expect(await checkServiceKeys(reading.db, keys, now).finally(reading.close)).toEqual([]);
});

test('a key that stored data needs must be there, and one that nothing needs is forgotten', async ({ newApi }) => {
  const [old, active, signing] = [key('old'), key('active'), key('s')];
  const { connection, ...api } = await newApi({ deps: { sealer: createSealer([old]) } });
  const check = (encryption: (typeof old)[]) => checkServiceKeys(connection.db, keysOf(encryption, signing), now);
  expect(await check([old])).toEqual([]);
  expect(await check([active])).toEqual([]);
  expect(await check([old])).toEqual([]);
  await createRecipient({ connection, ...api }, await api.createCaller());
  expect(await check([active])).toEqual(['ENCRYPTION_KEYS lacks the key old, which stored data needs']);
  expect(await check([active, old])).toEqual([]);
});

test('a pepper that a process lacks is forgotten, also while API keys need it: one that has leaked is removed', async ({
  newApi,
}) => {
  const { connection, createCaller } = await newApi();
  await createCaller();
  const [encryption, signing, next] = [key('a'), key('s'), key('next')];
  const leaked = { id: TEST_SECRETS.apiKeyPepper.id, key: randomBytes(32) };
  const foreign = async (pepper: Key) =>
    await findForeignKeys(connection.db, { ENCRYPTION_KEYS: [encryption], API_KEY_PEPPER: [pepper] });
  const check = (...peppers: Key[]) => checkServiceKeys(connection.db, keysOf([encryption], signing, peppers), now);
  expect([await check(leaked, next), await foreign(leaked), await foreign(next)]).toEqual([[], [], []]);
  expect(await check(next)).toEqual([]);
  expect(await foreign(leaked)).toEqual([`API_KEY_PEPPER begins with ${leaked.id}, which no process has`]);
});

test('no statement of a process runs before its keys were compared, also when the database or the table comes later', async ({
  newApi,
}) => {
  const { owner, databaseUrl } = await newApi();
  const [stored, given, signing] = [key('a'), key('a'), key('s')];
  await checkServiceKeys(owner.db, keysOf([stored], signing), now);
  const role = new URL(databaseUrl).username;
  const elsewhere = (change: (url: URL) => void): string => {
    const url = new URL(databaseUrl);
    change(url);
    return url.href;
  };
  const settings = { poolSizeMax: 1, name: 'test', onIdleError: () => undefined };
  let keyUrl = databaseUrl;
  const refused = vi.fn<(faults: readonly string[]) => void>();
  const openProcess = (encryptionKey: typeof stored) =>
    connect(databaseUrl, {
      ...settings,
      untilReady: createKeyCheck({
        config: {
          encryptionKeys: [encryptionKey],
          certificateSigningKeys: [signing],
          apiKeyPeppers: [TEST_SECRETS.apiKeyPepper],
        },
        open: () => connect(keyUrl, settings),
        log: { warn: vi.fn<() => void>() },
        refuse: refused,
      }),
    });
  const answerOf = async (process: ReturnType<typeof openProcess>, keepOpen = false) => {
    const answer = await process.pool.query('SELECT 1').then(() => 'answered', isUnavailable);
    if (!keepOpen) await process.close();
    return answer;
  };
  for (const url of [
    elsewhere((nowhere) => Object.assign(nowhere, { port: '1' })),
    elsewhere((missing) => Object.assign(missing, { pathname: '/missing' })),
    elsewhere((stranger) => Object.assign(stranger, { username: 'stranger' })),
  ]) {
    keyUrl = url;
    expect(await answerOf(openProcess(stored))).toBe(true);
  }
  keyUrl = databaseUrl;
  await owner.pool.query(`REVOKE ALL ON service_keys FROM "${role}"`);
  expect(await answerOf(openProcess(stored))).toBe(true);
  await owner.pool.query('ALTER TABLE service_keys RENAME TO hidden');
  const early = openProcess(stored);
  expect(await answerOf(early, true)).toBe(true);
  await owner.pool.query(`ALTER TABLE hidden RENAME TO service_keys; GRANT ALL ON service_keys TO "${role}"`);
  await expect.poll(() => answerOf(early, true), WAIT).toBe('answered');
  await early.close();
  expect(await answerOf(openProcess(given))).toBe(true);
  expect(refused.mock.calls).toEqual([[['ENCRYPTION_KEYS has another key under the id a than processes before']]]);
});

/** The API opens its connections as the worker does: test/db/privilege.test.ts starts it. */
const startWorker = async (env: Readonly<Record<string, string>>) =>
  await execa('node', [(await testPrograms()).worker], {
    cwd: repositoryRoot,
    env: { RUNTIME_ENVIRONMENT: 'local-sandbox', ...env },
    reject: false,
    all: true,
  });

test('a process with another key exits with 78 after one line of the log', async ({ newApi }) => {
  const { connection, databaseUrl } = await newApi();
  const signing = key('s');
  await checkServiceKeys(connection.db, keysOf([key('a')], signing), now);
  const { exitCode, all } = await startWorker({
    DATABASE_URL: databaseUrl,
    ENCRYPTION_KEYS: `a:${randomBytes(32).toString('base64')}`,
    CERTIFICATE_SIGNING_KEY: `s:${signing.key.toString('base64')}`,
  });
  expect(exitCode).toBe(78);
  expect(JSON.parse(all)).toMatchObject({
    faults: ['ENCRYPTION_KEYS has another key under the id a than processes before'],
  });
});

test('a process that cannot start for an unexpected reason exits with 1 after one line of the log, without values', async ({
  newApi,
}) => {
  const { owner, databaseUrl } = await newApi();
  await owner.pool.query('ALTER TABLE service_keys RENAME COLUMN fingerprint TO other');
  const { exitCode, all } = await startWorker({ DATABASE_URL: databaseUrl });
  expect(exitCode).toBe(1);
  expect(JSON.parse(all)).toMatchObject({ level: 60, process: 'worker', err: { kind: 'error', code: '42703' } });
  expect(all).not.toContain('params');
});

test('a process that searches stored data for a key is live, says so, ends its search when it is killed, and no other searches', async ({
  newApi,
  onTestFinished,
}) => {
  const [old, active, signing] = [key('old'), key('active'), key('s')];
  const { owner, databaseUrl, ...api } = await newApi({ deps: { sealer: createSealer([old]) } });
  await createRecipient({ owner, databaseUrl, ...api }, await api.createCaller());
  const check = (encryption: (typeof old)[]) => checkServiceKeys(api.connection.db, keysOf(encryption, signing), now);
  await check([old]);
  await owner.pool.query(
    `ALTER TABLE recipients RENAME TO many;
     CREATE VIEW recipients AS SELECT * FROM many WHERE pg_sleep(600) IS NOT NULL OFFSET 0;
     GRANT SELECT ON recipients TO "${new URL(databaseUrl).username}"`,
  );
  const encoded = ({ id, key: bytes }: typeof old) => `${id}:${bytes.toString('base64')}`;
  const port = await freePort();
  const child = spawn(process.execPath, [(await testPrograms()).api], {
    cwd: repositoryRoot,
    env: {
      ...process.env,
      RUNTIME_ENVIRONMENT: 'local-sandbox',
      DATABASE_URL: databaseUrl,
      ENCRYPTION_KEYS: encoded(active),
      CERTIFICATE_SIGNING_KEY: encoded(signing),
      TEMPORAL_ADDRESS: '127.0.0.1:1',
      PORT: String(port),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let log = '';
  child.stdout?.on('data', (chunk) => {
    log += chunk;
  });
  const health = (what: string) => fetch(`http://127.0.0.1:${port}/health/${what}`);
  expect((await vi.waitFor(() => health('live'), WAIT)).status).toBe(200);
  expect((await health('ready')).status).toBe(503);
  const said = log.split('\n').filter((line) => line.includes('stored data is searched'));
  expect(said.map((line) => JSON.parse(line))).toMatchObject([{ list: 'ENCRYPTION_KEYS', key_id: 'old' }]);
  expect(await check([active]).catch(isUnavailable)).toBe(true);
  const searches = async () =>
    (
      await owner.pool.query(
        `SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()`,
      )
    ).rowCount;
  expect(await searches()).toBe(1);
  // Meanwhile coming months are made.
  await dropComingMonths(owner.pool);
  expect(await addPartitions(api.connection.db)).toBeGreaterThan(0);
  child.kill('SIGKILL');
  await vi.waitUntil(async () => (await searches()) === 0, WAIT);
});
