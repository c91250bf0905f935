/** `keys`: a rotation while the service runs, repeatable, that loses no text and shows no key. */
import { randomBytes } from 'node:crypto';
import { eq, getTableColumns, getTableName, is } from 'drizzle-orm';
import { type AnyPgColumn, PgTable } from 'drizzle-orm/pg-core';
import type pg from 'pg';
import { describe, expect, vi } from 'vitest';
import { createCertifier } from '../../activities/certificate.ts';
import type { NamedKey } from '../../config/environment.ts';
import { findOrCreateConsumer } from '../../db/commands/session.ts';
import { findConsumer } from '../../db/queries/consumer.ts';
import { countSealed, DATA_KEY_COLUMNS, listSealed, replaceSealed, SEALED_COLUMNS } from '../../db/queries/sealed.ts';
import * as schema from '../../db/schema/index.ts';
import { createSealer } from '../../db/seal.ts';
import type { EnvironmentName } from '../../domain/runtime.ts';
import type { KeyRing } from '../../ops/keys.ts';
import { hashConsumerContact } from '../../process/contact-hash.ts';
import { type Caller, TEST_KEYS, TEST_SECRETS, type TestApi } from '../support/api.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { insertConsumerSession, newEmail, requestOtp, signIn } from '../support/consumer.ts';
import { digestTables, dumpTables, raceBehind } from '../support/database.ts';
import { FILE, openApi, withApi } from '../support/fixture.ts';
import { createOps, createRemoteOps, recordKeys } from '../support/ops.ts';
import { createRecipient, settle } from '../support/partner.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { insertCertifiedSettlement } from '../support/settlement.ts';
import { subscribe } from '../support/webhook.ts';

const RESTRICT_VIOLATION = '23001';
const AUDIT_ARGS = ['--operator', 'Ana', '--note', 'yearly rotation', '--yes'];
const OLD = TEST_SECRETS.encryption;
const newKey = (id: string): NamedKey => ({ id, key: randomBytes(32) });
const NEW = newKey('new-1');

const CONFIG = { smtpUrl: 'smtp://127.0.0.1:1' };

const test = withApi({ config: CONFIG })
  .extend('texts', FILE, ({ api, partner }) => createTexts(api, partner))
  .extend('ops', FILE, ({ api }) => opsOf(api))
  // Another database, for the test that counts every text.
  .extend('fresh', FILE, openApi({ config: CONFIG }));

const opsOf =
  (api: TestApi) =>
  async (given: Partial<KeyRing>, ...args: string[]) => {
    const keys = { ...TEST_KEYS, ...given };
    if (args[0] === 'reseal') await recordKeys(api.connection.db, keys);
    return await createOps(api.connection.db, { keys })('keys', ...args);
  };
const rotated = (...encryptionKeys: KeyRing['encryptionKeys']) => ({ encryptionKeys });
const columnNames = (columns: readonly AnyPgColumn[]) =>
  columns.map(({ table, name }) => `${getTableName(table)}.${name}`);

/** The sealed texts of a database. */
function createTexts(api: TestApi, partner: Caller) {
  /** Stores at least one text in each sealed column. */
  async function fill(): Promise<{ recipientId: string; webhookId: string }> {
    const recipientId = await createRecipient(api, partner);
    await settle(api, partner, { recipient_id: recipientId });
    const { webhook_id } = await subscribe(api, partner, 'http://127.0.0.1:9999/', ['recipient.deactivated']);
    await api.call(partner, 'POST', `/v1/webhooks/${webhook_id}/rotate-secret`);
    expect((await requestOtp(api, { email: newEmail() })).statusCode).toBe(200);
    await insertConsumerSession(api);
    expect((await sendBankledger(api, bankledgerBody('stl_none'))).statusCode).toBe(200);
    return { recipientId, webhookId: webhook_id };
  }
  /** Every sealed text as these keys open it; undefined where they cannot. */
  async function openedBy(...keys: KeyRing['encryptionKeys']): Promise<Map<string, string | undefined>> {
    const sealer = createSealer(keys);
    const opened = new Map<string, string | undefined>();
    for (const sealed of SEALED_COLUMNS) {
      for (const { key, text } of await listSealed(api.connection.db, sealed, undefined, 10_000)) {
        const name = [sealed.column.name, ...key].join(' ');
        if (text !== null) opened.set(name, sealer.tryOpen(text, sealed.bindingOf(key))?.toString('base64'));
      }
    }
    return opened;
  }
  async function countBy(keyId: string): Promise<number> {
    const counts = await Promise.all(SEALED_COLUMNS.map((sealed) => countSealed(api.connection.db, sealed)));
    return counts.flat().reduce((sum, { keyId: of, count }) => (of === keyId ? sum + count : sum), 0);
  }
  return { fill, openedBy, countBy };
}

test('the lists of sealed columns have every column whose name ends in _sealed, and no other', () => {
  const tables = Object.values(schema).filter((table) => is(table, PgTable));
  const named = tables.flatMap((table) =>
    Object.values(getTableColumns(table))
      .filter(({ name }) => name.endsWith('_sealed'))
      .map(({ name }) => `${getTableName(table)}.${name}`),
  );
  expect(named.length).toBeGreaterThan(0);
  expect(
    new Set([...columnNames(SEALED_COLUMNS.map(({ column }) => column)), ...columnNames(DATA_KEY_COLUMNS)]),
  ).toEqual(new Set(named));
});

describe('keys reseal', () => {
  const pepper = { id: 'early000', secret: 'a pepper that no process has' };
  test.for<[string, Partial<KeyRing>, string]>([
    ['that no process has', rotated(newKey('early'), OLD), 'ENCRYPTION_KEYS begins with early, which no process has'],
    [
      "that differs from the processes' key of its name",
      rotated(newKey(OLD.id)),
      `ENCRYPTION_KEYS has another key under the id ${OLD.id} than processes before`,
    ],
    [
      'that is a pepper and that no process has',
      { apiKeyPeppers: [pepper, TEST_SECRETS.apiKeyPepper] },
      'API_KEY_PEPPER begins with early000, which no process has',
    ],
  ])(
    'is refused with an active key %s, as its preview, and changes nothing',
    async ([, given, fault], { api, texts }) => {
      await texts.fill();
      await recordKeys(api.connection.db);
      const ops = createOps(api.connection.db, { keys: { ...TEST_KEYS, ...given } });
      await expectUnchanged(api.connection.pool, async () => {
        for (const args of [AUDIT_ARGS, AUDIT_ARGS.slice(0, -1)]) {
          const { exitCode, printed, warned } = await ops('keys', 'reseal', ...args);
          expect([exitCode, printed, warned.length]).toEqual([1, [], 1]);
          expect(warned[0]).toContain(fault);
        }
      });
    },
  );

  test('leaves a text that no configured key opens, reports it, and exits with 1', async ({ ops, texts }) => {
    await texts.fill();
    const before = await texts.openedBy(OLD);
    const { exitCode, printed } = await ops(rotated(NEW), 'reseal', ...AUDIT_ARGS);
    expect(exitCode).toBe(1);
    expect(printed.join('\n')).toMatch(/recipients\.data_key_sealed: 0 sealed by new-1, \d+ UNREADABLE/);
    expect(await texts.openedBy(OLD)).toEqual(before);
  });

  test('reads a column of many rows to its end, and so the consumers', async ({ newApi }) => {
    const own = await newApi({ config: CONFIG });
    await subscribe(own, await own.createCaller(), 'http://127.0.0.1:9999/');
    await signIn(own, { email: newEmail() });
    const copies = (table: string, key: string, changes: string, of = 'true') =>
      own.owner.pool.query(
        `INSERT INTO ${table} SELECT (jsonb_populate_record(t, jsonb_build_object('${key}', '000' || n, ${changes}))).*
           FROM ${table} t, generate_series(1, 450) n WHERE ${of}`,
      );
    // They come first, and are sealed by the active key, or hashed by a pepper that is not configured.
    await copies('webhooks', 'webhook_id', `'secret_sealed', 'new-1.AAAA'`);
    await copies('organizations', 'org_id', `'name', ''`, `kind = 'consumer'`);
    await copies('consumers', 'consumer_id', `'contact_sealed', 'new-1.AAAA', 'contact_hash', '\\x' || md5(n::text)`);
    const next = { id: 'next0002', secret: 'the pepper of a later year' };
    const keys = { ...rotated(NEW, OLD), apiKeyPeppers: [next, ...TEST_KEYS.apiKeyPeppers] as const };
    const { printed } = await opsOf(own)(keys, 'reseal', ...AUDIT_ARGS);
    expect(printed).toContain('webhooks.secret_sealed: 1 sealed by new-1');
    expect(printed).toContain('contact_hash: 1 hashed under next0002');
  });

  test('does not overwrite a text that has changed since it was read', async ({ api, partner, texts }) => {
    const { webhookId } = await texts.fill();
    const sealed = SEALED_COLUMNS.find(({ column }) => column === schema.webhooks.secretSealed) ?? expect.fail();
    const rows = await listSealed(api.connection.db, sealed, undefined, 10_000);
    const read = rows.find(({ key }) => key[0] === webhookId);
    const rotation = await api.call(partner, 'POST', `/v1/webhooks/${webhookId}/rotate-secret`);
    const to = createSealer([NEW]).seal('123456789', sealed.bindingOf([webhookId]));
    const stale = { key: [webhookId], from: read?.text ?? '', to };
    expect(await replaceSealed(api.connection.db, sealed, [stale])).toBe(0);
    const text = (await texts.openedBy(OLD)).get(`secret_sealed ${webhookId}`) ?? '';
    expect(`whsec_${text}`).toBe(rotation.json().secret);
  });

  test.for<[string, string, 'recipientId' | 'webhookId']>([
    ['recipients.data_key_sealed', 'recipient_id', 'recipientId'],
    // Another table has a column of this name.
    ['webhooks.secret_sealed', 'webhook_id', 'webhookId'],
  ])(
    'leaves a row in use for the next run, and reseals the others: %s',
    async ([column, id, held], { api, ops, texts }) => {
      const filled = await texts.fill();
      const holder = await api.connection.pool.connect();
      const name = `new-${id}`;
      try {
        await holder.query('BEGIN');
        await holder.query(`SELECT 1 FROM ${column.split('.')[0]} WHERE ${id} = $1 FOR SHARE`, [filled[held]]);
        const { exitCode, printed } = await ops(rotated(newKey(name), OLD), 'reseal', ...AUDIT_ARGS);
        expect(exitCode).toBe(1);
        expect(printed.join('\n')).toMatch(new RegExp(`${column}: \\d+ sealed by ${name}, 1 in use: run it again`));
        await holder.query('COMMIT');
      } finally {
        holder.release(true);
      }
      expect(await texts.countBy(OLD.id)).toBe(1);
      await api.connection.db.delete(schema.otpChallenges);
    },
  );
});

test('every text opens by the new key alone after a rotation, a second run changes nothing, and the old key can go', async ({
  fresh,
}) => {
  const [ops, { fill, openedBy }] = [opsOf(fresh), createTexts(fresh, await fresh.createCaller())];
  const { pool } = fresh.connection;
  for (let n = 0; n < 3; n += 1) await fill();
  const before = await openedBy(OLD);
  expect(new Set([...before.keys()].map((key) => key.split(' ')[0]))).toEqual(
    new Set(SEALED_COLUMNS.map(({ column }) => column.name)),
  );
  expect([...before.values()]).not.toContain(undefined);

  expect((await ops(rotated(NEW, OLD), 'list')).printed).toContain(
    `  ${OLD.id}: ${before.size} sealed texts, still opens them; run keys reseal`,
  );
  const reseal = async () => (await ops(rotated(NEW, OLD), 'reseal', ...AUDIT_ARGS)).exitCode;
  expect(await Promise.all([reseal(), reseal()])).toContain(0);
  expect(await reseal()).toBe(0);
  expect(await openedBy(NEW)).toEqual(before);
  expect(await dumpTables(pool)).not.toContain(`${OLD.id}.`);

  const sealed = await digestTables(pool);
  expect(await reseal()).toBe(0);
  const again = await digestTables(pool);
  expect(Object.keys(again).filter((table) => again[table] !== sealed[table])).toEqual(['audit_entries']);
  const { printed } = await ops(rotated(NEW, OLD), 'list');
  expect(printed).toContain(`  ${NEW.id}: ${before.size} sealed texts, active`);
  expect(printed).toContain(`  ${OLD.id}: 0 sealed texts, no longer needed by them`);
});

test('keys reseal hashes the contacts of consumers under the active pepper, so that the older one can go', async ({
  fresh,
}) => {
  const [current] = TEST_KEYS.apiKeyPeppers;
  const next = { id: 'next0000', secret: 'the pepper of the next year' };
  const email = newEmail();
  const { consumerId } = await signIn(fresh, { email });
  const rehash = await opsOf(fresh)({ apiKeyPeppers: [next, current] }, 'reseal', ...AUDIT_ARGS);
  expect(rehash.printed).toContainEqual(expect.stringMatching(/^contact_hash: \d+ hashed under next0000$/));
  const find = (pepper: typeof current, environment: EnvironmentName = 'local sandbox') =>
    fresh.connection.db.transaction((tx) =>
      findConsumer(tx, [hashConsumerContact(pepper, { channel: 'email', address: email })], environment),
    );
  expect((await find(next))?.consumerId).toBe(consumerId);
  expect([await find(current), await find(next, 'production')]).toEqual([undefined, undefined]);
});

test('keys reseal leaves a consumer whose contact has another one under the active pepper, and hashes the others', async ({
  fresh,
}) => {
  const [current] = TEST_KEYS.apiKeyPeppers;
  const next = { id: 'next0001', secret: 'the pepper of the year after' };
  const contact = { channel: 'email', address: newEmail() } as const;
  const { consumerId } = await signIn(fresh, { email: contact.address });
  // Signed in while the older pepper was missing.
  const hashes = [hashConsumerContact(next, contact)] as const;
  const other = await fresh.connection.db.transaction((tx) =>
    findOrCreateConsumer(fresh.deps, tx, { contact, hashes, at: new Date() }),
  );
  const { consumerId: after } = await signIn(fresh);
  const { printed } = await opsOf(fresh)({ apiKeyPeppers: [next, current] }, 'reseal', ...AUDIT_ARGS);
  expect(printed).toContainEqual(
    expect.stringMatching(/^contact_hash: \d+ hashed under next0001, 1 left: their contacts have another consumer$/),
  );
  const { rows } = await fresh.connection.pool.query(
    'SELECT consumer_id, pepper_id FROM consumers WHERE consumer_id = ANY ($1) ORDER BY consumer_id',
    [[consumerId, other.consumerId, after]],
  );
  expect(rows.map(({ pepper_id }) => pepper_id)).toEqual([current.id, next.id, next.id]);
});

test.for([
  ['the same bytes under the same key', `body_sealed = body_sealed`],
  ['other bytes under the same key', `body_sealed = body_sealed || 'A'`],
  ['another column as well', `body_sealed = 'new-9.AAAA', matched = NOT matched`],
  ['another digest', `body_sha256 = sha256('other')`],
])('only the sealing of a stored provider event can change: %s is refused', async ([, change], { api }) => {
  await sendBankledger(api, bankledgerBody('stl_none'));
  await expect(api.owner.pool.query(`UPDATE provider_events SET ${change}`)).rejects.toMatchObject({
    code: RESTRICT_VIOLATION,
  });
});

test('keys list shows missing keys, and certificates by the key that signed them', async ({ api, partner, ops }) => {
  const [older, recent] = [newKey('2025'), newKey('2026')];
  for (const key of [older, recent, recent])
    await insertCertifiedSettlement(api.connection.db, partner.orgId, { certifier: createCertifier([key]) });
  const forgotten = await api.createKey(partner.orgId, 'read', { pepperId: 'gone0000' });
  await api.createKey(partner.orgId, 'read', { pepperId: 'gone0001', status: 'revoked' });
  const { exitCode, printed } = await ops({ certificateSigningKeys: [recent, older] }, 'list');
  expect(exitCode).toBe(0);
  expect(printed).toContain('  2026: 2 certificates, active');
  expect(printed).toContain('  2025: 1 certificates, its public key stays published permanently');
  expect(printed).toContain('  gone0000: 1 API keys, consumers and operators, NOT CONFIGURED, they are refused');
  expect(printed.join('\n')).not.toContain('gone0001');
  const { lists } = JSON.parse((await ops({ certificateSigningKeys: [recent] }, 'list', '--json')).printed[0] ?? '');
  const keysOf = (name: string) => lists.find(({ list }: { list: string }) => list === name).keys;
  expect(keysOf('API_KEY_PEPPER')).toContainEqual({ id: 'gone0000', state: 'missing', count: 1 });
  expect(keysOf('CERTIFICATE_SIGNING_KEY')).toEqual([
    { id: '2026', state: 'active', count: 2 },
    { id: '2025', state: 'missing', count: 1 },
  ]);
  await api.owner.db.delete(schema.apiKeys).where(eq(schema.apiKeys.keyId, forgotten.keyId));
  expect((await ops({ certificateSigningKeys: [recent] }, 'list')).printed).toContain(
    '  2025: 1 certificates, NOT CONFIGURED, they do not verify',
  );
});

test('keys list counts the tokens of operators by their pepper, and no revoked one', async ({ fresh }) => {
  const { db } = fresh.connection;
  const [current] = TEST_KEYS.apiKeyPeppers;
  const next = { id: 'next0002', secret: 'the pepper of the year after that' };
  await createRemoteOps(db, {}, ['ana', 'bo']);
  const countsOf = async () => {
    const { printed } = await opsOf(fresh)({ apiKeyPeppers: [next, current] }, 'list', '--json');
    const { lists } = JSON.parse(printed[0] ?? '');
    const { keys } = lists.find(({ list }: { list: string }) => list === 'API_KEY_PEPPER');
    return keys.find(({ id }: { id: string }) => id === current.id).count;
  };
  const before = await countsOf();
  const { name } = schema.operators;
  await db.update(schema.operators).set({ revokedAt: new Date(), revokedBy: 'bo' }).where(eq(name, 'ana'));
  expect(await countsOf()).toBe(before - 1);
  await db.update(schema.operators).set({ pepperId: next.id }).where(eq(name, 'bo'));
  expect(await countsOf()).toBe(before - 2);
});

test('keys list on a machine whose clock is a day ahead counts an API key that expires within the day', async ({
  fresh,
}) => {
  const { orgId } = await fresh.createCaller();
  await fresh.createKey(orgId, 'read', { expiresAt: new Date(Date.now() + 3_600_000) });
  const listed = async () => (await opsOf(fresh)({}, 'list')).printed;
  const right = await listed();
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 86_400_000 });
  expect(await listed().finally(() => vi.useRealTimers())).toEqual(right);
});

test('each change of a list is recorded once: who, why, and the ids before and after', async ({ api, ops }) => {
  const [one, two] = [newKey('one'), newKey('two')];
  const changes: KeyRing['encryptionKeys'][] = [[one], [one, two], [two, one], [two, one], [two]];
  for (const keys of changes) expect((await ops(rotated(...keys), 'record', ...AUDIT_ARGS)).exitCode).toBe(0);
  const entries = await api.connection.db
    .select()
    .from(schema.auditEntries)
    .where(eq(schema.auditEntries.action, 'keys_record'))
    .orderBy(schema.auditEntries.auditId);
  const ofEncryption = entries.filter(({ objectId }) => objectId.startsWith('ENCRYPTION_KEYS:')).slice(-4);
  expect(ofEncryption.map(({ objectId, orgId, operator }) => [objectId, orgId, operator])).toEqual([
    ['ENCRYPTION_KEYS:one', null, 'ana'],
    ['ENCRYPTION_KEYS:one,two', null, 'ana'],
    ['ENCRYPTION_KEYS:two,one', null, 'ana'],
    ['ENCRYPTION_KEYS:two', null, 'ana'],
  ]);
  expect(ofEncryption.at(-1)?.note).toBe('ENCRYPTION_KEYS from two,one to two: yearly rotation');
  expect((await ops(rotated(two), 'list')).printed[0]).toMatch(/^ENCRYPTION_KEYS: recorded by ana at /);
  expect((await ops(rotated(one, two), 'list')).printed[0]).toBe(
    'ENCRYPTION_KEYS: NOT RECORDED, was two: npm run ops -- keys record',
  );
  const recorded = await ops(rotated(one, two), 'record', ...AUDIT_ARGS, '--json');
  expect(JSON.parse(recorded.printed[0] ?? '').changes).toEqual([
    { list: 'ENCRYPTION_KEYS', from: ['two'], to: ['one', 'two'] },
  ]);
  const again = await ops(rotated(one, two), 'record', ...AUDIT_ARGS);
  expect(again.printed).toEqual(['Nothing has changed since the last record.']);
  expect(entries.filter(({ objectId }) => objectId.startsWith('TEMPORAL_PAYLOAD_KEYS'))).toEqual([]);
  const isRecorded = async (...keys: KeyRing['encryptionKeys']) =>
    JSON.parse((await ops(rotated(...keys), 'list', '--json')).printed.join('')).lists[0].is_recorded;
  expect([await isRecorded(one, two), await isRecorded(two)]).toEqual([true, false]);
});

test('keys list says that a list without keys is not recorded, until it is', async ({ fresh }) => {
  const ops = opsOf(fresh);
  const listed = async () => (await ops({}, 'list')).printed.filter((line) => line.startsWith('TEMPORAL_PAYLOAD_KEYS'));
  expect(await listed()).toEqual([]);
  await ops({ payloadKeys: [newKey('wire')] }, 'record', ...AUDIT_ARGS);
  expect(await listed()).toEqual(['TEMPORAL_PAYLOAD_KEYS: NOT RECORDED, was wire: npm run ops -- keys record']);
  await ops({}, 'record', ...AUDIT_ARGS);
  expect(await listed()).toEqual([]);
});

test('a change of a list that two operators record at the same moment is recorded once', async ({ api, ops }) => {
  const hold = (holder: pg.PoolClient) =>
    holder.query(`SELECT pg_advisory_xact_lock(hashtextextended('audit_entries', 0))`);
  const record = () => ops(rotated(newKey('both')), 'record', ...AUDIT_ARGS);
  const results = await raceBehind(api.connection.pool, { hold }, [record, record]);
  const printed = results.flatMap((result) => result.printed);
  expect(printed.filter((line) => line.endsWith(' to both.'))).toHaveLength(1);
});

test('no command shows a key, and no audit entry holds one', async ({ api, ops }) => {
  const shown: string[] = [];
  for (const args of [['list'], ['list', '--json'], ['record', ...AUDIT_ARGS], ['reseal', ...AUDIT_ARGS]]) {
    const { printed, warned } = await ops(rotated(newKey('quiet'), OLD), ...args);
    shown.push(...printed, ...warned);
  }
  const text = shown.join('\n') + JSON.stringify(await api.connection.db.select().from(schema.auditEntries));
  const secrets = [OLD, TEST_SECRETS.signing].flatMap(({ key }) =>
    (['hex', 'base64', 'base64url'] as const).map((encoding) => key.toString(encoding)),
  );
  for (const secret of [...secrets, TEST_SECRETS.apiKeyPepper.secret]) expect(text).not.toContain(secret);
});
