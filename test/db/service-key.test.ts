/** A process whose keys are not those of the stored data does not start. */
import { randomBytes } from 'node:crypto';
import { execa } from 'execa';
import { expect, vi } from 'vitest';
import { connect } from '../../db/client.ts';
import { checkServiceKeys } from '../../db/queries/service-key.ts';
import { createSealer } from '../../db/seal.ts';
import { checkKeys } from '../../process/key-check.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { withApi } from '../support/fixture.ts';
import { createRecipient } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { testPrograms } from '../support/program.ts';

const test = withApi();

const key = (id: string) => ({ id, key: randomBytes(32) });
const now = new Date();

test('a key under the name of another one is refused, and a new name is not', async ({ newApi }) => {
  const { connection } = await newApi();
  const [a, b, signing] = [key('a'), key('b'), key('s')];
  const check = (encryption: (typeof a)[]) =>
    checkServiceKeys(connection.db, { ENCRYPTION_KEYS: encryption, CERTIFICATE_SIGNING_KEY: [signing] }, now);
  expect(await check([a])).toEqual([]);
  expect(await check([b, a])).toEqual([]);
  expect(await check([{ ...a, key: b.key }, b])).toEqual([
    'ENCRYPTION_KEYS has another key under the id a than processes before',
  ]);
});

test('a key that stored data needs must be there, and one that nothing needs is forgotten', async ({ newApi }) => {
  const [old, active, signing] = [key('old'), key('active'), key('s')];
  const { connection, ...api } = await newApi({ deps: { sealer: createSealer([old]) } });
  const check = (encryption: (typeof old)[]) =>
    checkServiceKeys(connection.db, { ENCRYPTION_KEYS: encryption, CERTIFICATE_SIGNING_KEY: [signing] }, now);
  expect(await check([old])).toEqual([]);
  expect(await check([active])).toEqual([]);
  expect(await check([old])).toEqual([]);
  await createRecipient({ connection, ...api }, await api.createCaller());
  expect(await check([active])).toEqual(['ENCRYPTION_KEYS lacks the key old, which stored data needs']);
  expect(await check([active, old])).toEqual([]);
});

test('keys are compared later while the database is down, or a migration has not created or granted their table', async ({
  newApi,
}) => {
  const { owner, databaseUrl } = await newApi();
  const [stored, given, signing] = [key('a'), key('a'), key('s')];
  await checkServiceKeys(owner.db, { ENCRYPTION_KEYS: [stored], CERTIFICATE_SIGNING_KEY: [signing] }, now);
  const role = new URL(databaseUrl).username;
  const nowhere = new URL(databaseUrl);
  nowhere.port = '1';
  const warned = vi.fn<() => void>();
  const refused = vi.fn<(faults: readonly string[]) => void>();
  const urls = [nowhere.href, databaseUrl, databaseUrl];
  const check = () =>
    checkKeys({
      config: { encryptionKeys: [given], certificateSigningKeys: [signing] },
      open: () => connect(urls.shift() ?? databaseUrl, { poolSizeMax: 1, name: 'test', onIdleError: () => undefined }),
      log: { warn: warned },
      refuse: refused,
    });
  await check();
  await owner.pool.query(`REVOKE ALL ON service_keys FROM "${role}"`);
  await check();
  await owner.pool.query('ALTER TABLE service_keys RENAME TO hidden');
  await check();
  expect([warned.mock.calls.length, refused.mock.calls.length]).toEqual([3, 0]);
  await owner.pool.query(`ALTER TABLE hidden RENAME TO service_keys; GRANT ALL ON service_keys TO "${role}"`);
  await expect.poll(() => refused.mock.calls.length, WAIT).toBe(3);
});

test('a process with another key exits with 78 after one line of the log', async ({ newApi }) => {
  const { connection, databaseUrl } = await newApi();
  const signing = key('s');
  await checkServiceKeys(connection.db, { ENCRYPTION_KEYS: [key('a')], CERTIFICATE_SIGNING_KEY: [signing] }, now);
  // The API opens its connections as the worker does: test/db/privilege.test.ts starts it.
  const { exitCode, stdout } = await execa('node', [(await testPrograms()).worker], {
    cwd: repositoryRoot,
    env: {
      RUNTIME_ENVIRONMENT: 'local-sandbox',
      DATABASE_URL: databaseUrl,
      ENCRYPTION_KEYS: `a:${randomBytes(32).toString('base64')}`,
      CERTIFICATE_SIGNING_KEY: `s:${signing.key.toString('base64')}`,
    },
    reject: false,
  });
  expect(exitCode).toBe(78);
  expect(JSON.parse(stdout)).toMatchObject({
    faults: ['ENCRYPTION_KEYS has another key under the id a than processes before'],
  });
});
