/** Rotations by an operator's hand: beside a service that runs, as often as one likes, with nothing lost and nothing shown. */
import { randomBytes } from 'node:crypto';
import { eq, getTableColumns, getTableName, is } from 'drizzle-orm';
import { PgTable } from 'drizzle-orm/pg-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createCertifier } from '../../activities/certificate.ts';
import { certificateKeys } from '../../api/http/certificate-key.ts';
import type { NamedKey } from '../../config.ts';
import { countSealed, listSealed, replaceSealed, SEALED_COLUMNS } from '../../db/queries/sealed.ts';
import * as schema from '../../db/schema/index.ts';
import { createSealer } from '../../db/seal.ts';
import type { KeyRing } from '../../ops/keys.ts';
import { runOps } from '../../ops/main.ts';
import { type Caller, createTestApi, TEST_KEYS, TEST_SECRETS, type TestApi } from '../support/api.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { newEmail, requestOtp } from '../support/consumer.ts';
import { digestTables, dumpTables } from '../support/database.ts';
import { createRecipient, settleBody } from '../support/partner.ts';
import { insertCertifiedSettlement } from '../support/settlement.ts';

const RESTRICT_VIOLATION = '23001';
const ACT = ['--operator', 'Ana', '--note', 'yearly rotation'];
const OLD = TEST_SECRETS.encryption;
const newKey = (id: string): NamedKey => ({ id, key: randomBytes(32) });
const NEW = newKey('new-1');

let api: TestApi;
let caller: Caller;
let printed: string[];

beforeAll(async () => {
  api = await createTestApi({ config: { smtpUrl: 'smtp://127.0.0.1:1' } });
  caller = await api.createCaller();
});
afterAll(() => api.close());
beforeEach(() => {
  printed = [];
});

const opsWith = (keys: Partial<KeyRing>, ...args: string[]) =>
  runOps(
    {
      runtime: 'local-sandbox',
      db: api.connection.db,
      keys: { ...TEST_KEYS, ...keys },
      client: () => {
        throw new Error('keys need no Temporal');
      },
      now: () => new Date(),
      print: (line) => printed.push(line),
    },
    ['keys', ...args],
  );
const rotated = (...encryptionKeys: KeyRing['encryptionKeys']) => ({ encryptionKeys });
const columnNames = () => SEALED_COLUMNS.map(({ column }) => `${getTableName(column.table)}.${column.name}`);

/** One text in each sealed column, and some more. */
async function fill(): Promise<{ recipientId: string }> {
  const recipientId = await createRecipient({ api }, caller);
  await api.call(caller, 'POST', '/v2/settle', settleBody(recipientId), { 'idempotency-key': crypto.randomUUID() });
  const { webhook_id } = (
    await api.call(caller, 'POST', '/v1/webhooks', {
      url: 'http://127.0.0.1:9999/',
      event_types: ['recipient.deactivated'],
    })
  ).json();
  await api.call(caller, 'POST', `/v1/webhooks/${webhook_id}/rotate-secret`);
  expect((await requestOtp(api, { email: newEmail() })).statusCode).toBe(200);
  expect((await sendBankledger(api, bankledgerBody('stl_none'))).statusCode).toBe(200);
  return { recipientId };
}

/** What everything sealed says to somebody with these keys; undefined where it says nothing. */
async function openedBy(...keys: KeyRing['encryptionKeys']): Promise<Map<string, string | undefined>> {
  const sealer = createSealer(keys);
  const opened = new Map<string, string | undefined>();
  for (const sealed of SEALED_COLUMNS) {
    for (const { key, text } of await listSealed(api.connection.db, sealed, undefined, 10_000)) {
      if (text !== null)
        opened.set(
          [sealed.column.name, ...key].join(' '),
          sealer.open(text, sealed.bindingOf(key))?.toString('base64'),
        );
    }
  }
  return opened;
}

async function countBy(keyId: string): Promise<number> {
  const counts = await Promise.all(SEALED_COLUMNS.map((sealed) => countSealed(api.connection.db, sealed)));
  return counts.flat().reduce((sum, { keyId: of, count }) => (of === keyId ? sum + count : sum), 0);
}

test('every column whose name says that it is sealed is in the list, and no other', () => {
  const tables = Object.values(schema).filter((table) => is(table, PgTable));
  const named = tables.flatMap((table) =>
    Object.values(getTableColumns(table))
      .filter(({ name }) => name.endsWith('_sealed'))
      .map(({ name }) => `${getTableName(table)}.${name}`),
  );
  expect(named.length).toBeGreaterThan(0);
  expect(new Set(columnNames())).toEqual(new Set(named));
});

describe('is refused with 1, and nothing is written:', () => {
  test.each([
    ['no verb', []],
    ['an unknown verb', ['rotate', ...ACT]],
    ['a list of one key', ['list', 'old-1']],
    ['a recording by nobody', ['record', '--note', 'why']],
    ['a recording without a reason', ['record', '--operator', 'ana']],
    ['sealing anew by nobody', ['reseal', '--note', 'why']],
    ['sealing anew without a reason', ['reseal', '--operator', 'ana', '--note', ' ']],
  ])('%s', async (_what, args) => {
    const before = await digestTables(api.connection.pool);
    expect(await opsWith({}, ...args)).toBe(1);
    expect(printed.join('\n')).toContain('npm run ops -- keys reseal');
    expect(await digestTables(api.connection.pool)).toEqual(before);
  });
});

describe('keys reseal', () => {
  test('leaves what no configured key opens as it is, says so, and answers 1', async () => {
    await fill();
    const before = await openedBy(OLD);
    expect(await opsWith(rotated(NEW), 'reseal', ...ACT)).toBe(1);
    expect(printed.join('\n')).toMatch(/account_number_sealed: 0 sealed by new-1, \d+ UNREADABLE/);
    expect(await openedBy(OLD)).toEqual(before);
  });

  test('overwrites nothing that was changed since it was read', async () => {
    const { recipientId } = await fill();
    const [sealed] = SEALED_COLUMNS;
    if (!sealed) expect.fail('no sealed column');
    const rows = await listSealed(api.connection.db, sealed, undefined, 10_000);
    const read = rows.find(({ key }) => key[0] === recipientId);
    const bank = { bank_name: 'National Commercial Bank', account_number: '555500009999', currency: 'JMD' };
    expect((await api.call(caller, 'PUT', `/v1/recipients/${recipientId}`, { bank_details: bank })).statusCode).toBe(
      200,
    );
    const stale = createSealer([NEW]).seal('123456789', sealed.bindingOf([recipientId]));
    expect(
      await replaceSealed(api.connection.db, sealed, [{ key: [recipientId], from: read?.text ?? '', to: stale }]),
    ).toBe(0);
    expect(
      Buffer.from((await openedBy(OLD)).get(`account_number_sealed ${recipientId}`) ?? '', 'base64').toString(),
    ).toBe('555500009999');
  });

  test('waits for nobody: a row in use is left for another run, and the rest is done', async () => {
    const { recipientId } = await fill();
    const holder = await api.connection.pool.connect();
    try {
      await holder.query('BEGIN');
      await holder.query('SELECT 1 FROM recipients WHERE recipient_id = $1 FOR SHARE', [recipientId]);
      expect(await opsWith(rotated(newKey('new-0'), OLD), 'reseal', ...ACT)).toBe(1);
      await holder.query('COMMIT');
    } finally {
      holder.release(true);
    }
    expect(printed.join('\n')).toMatch(/account_number_sealed: \d+ sealed by new-0, 1 in use: run it again/);
    expect(await countBy(OLD.id)).toBe(1);
    await api.connection.db.delete(schema.otpChallenges);
  });
});

test('a rotation: every text opens by the new key alone, twice changes nothing, and the old key can go', {
  timeout: 60_000,
}, async () => {
  // What the test before left under a key of its own is nothing that this one is about.
  const left = await createTestApi({ config: { smtpUrl: 'smtp://127.0.0.1:1' } });
  const [previous, previousCaller] = [api, caller];
  [api, caller] = [left, await left.createCaller()];
  try {
    for (let n = 0; n < 3; n += 1) await fill();
    const before = await openedBy(OLD);
    expect(new Set([...before.keys()].map((key) => key.split(' ')[0]))).toEqual(
      new Set(SEALED_COLUMNS.map(({ column }) => column.name)),
    );
    expect([...before.values()]).not.toContain(undefined);

    await opsWith(rotated(NEW, OLD), 'list');
    expect(printed).toContain(`  ${OLD.id}: ${before.size} sealed texts, still opens them; keys reseal`);
    const both = await Promise.all([
      opsWith(rotated(NEW, OLD), 'reseal', ...ACT),
      opsWith(rotated(NEW, OLD), 'reseal', ...ACT),
    ]);
    expect(both).toContain(0);
    expect(await opsWith(rotated(NEW, OLD), 'reseal', ...ACT)).toBe(0);
    expect(await openedBy(NEW)).toEqual(before);
    expect(await dumpTables(api.connection.pool)).not.toContain(`${OLD.id}.`);

    const sealed = await digestTables(api.connection.pool);
    expect(await opsWith(rotated(NEW, OLD), 'reseal', ...ACT)).toBe(0);
    const again = await digestTables(api.connection.pool);
    expect(Object.keys(again).filter((table) => again[table] !== sealed[table])).toEqual(['audit_entries']);
    printed = [];
    await opsWith(rotated(NEW, OLD), 'list');
    expect(printed).toContain(`  ${NEW.id}: ${before.size} sealed texts, active`);
    expect(printed).toContain(`  ${OLD.id}: 0 sealed texts, no longer needed by them`);
  } finally {
    [api, caller] = [previous, previousCaller];
    await left.close();
  }
});

test.each([
  ['the same bytes under the same key', `body_sealed = body_sealed`],
  ['other bytes under the same key', `body_sealed = body_sealed || 'A'`],
  ['anything else along with it', `body_sealed = 'new-9.AAAA', matched = NOT matched`],
  ['its digest', `body_sha256 = sha256('other')`],
])('a stored event is permanent but for its sealing: %s is refused', async (_what, change) => {
  await sendBankledger(api, bankledgerBody('stl_none'));
  await expect(api.connection.pool.query(`UPDATE provider_events SET ${change}`)).rejects.toMatchObject({
    code: RESTRICT_VIOLATION,
  });
});

test('keys list names a key that is gone, keys of an unknown pepper, and every certificate by the key that signed it', async () => {
  const [older, recent] = [newKey('2025'), newKey('2026')];
  for (const key of [older, recent, recent])
    await insertCertifiedSettlement(api.connection.db, createCertifier([key]), caller.orgId);
  const forgotten = await api.createKey(caller.orgId, 'read', { pepperId: 'gone0000' });
  const unknown = await api.createKey(caller.orgId, 'read', { pepperId: null });
  await api.createKey(caller.orgId, 'read', { pepperId: 'gone0001', status: 'revoked' });
  expect(await opsWith({ certificateSigningKeys: [recent, older] }, 'list')).toBe(0);
  expect(printed).toContain('  2026: 2 certificates, active');
  expect(printed).toContain('  2025: 1 certificates, still published, for ever');
  expect(printed).toContain('  gone0000: 1 API keys, NOT CONFIGURED, they are refused');
  expect(printed).toContain('  1 API keys not used since their pepper is noted');
  expect(printed.join('\n')).not.toContain('gone0001');
  await api.connection.db.delete(schema.apiKeys).where(eq(schema.apiKeys.keyId, forgotten.keyId));
  await api.connection.db.delete(schema.apiKeys).where(eq(schema.apiKeys.keyId, unknown.keyId));
  printed = [];
  await opsWith({ certificateSigningKeys: [recent] }, 'list');
  expect(printed).toContain('  2025: 1 certificates, NOT CONFIGURED, they do not verify');
});

test('a certificate that an old key signed verifies by the key set of after the rotation, and not by one without it', async () => {
  const [older, recent] = [newKey('2023'), newKey('2024')];
  const { certId } = await insertCertifiedSettlement(api.connection.db, createCertifier([older]), caller.orgId);
  const [stored] = await api.connection.db
    .select()
    .from(schema.certificates)
    .where(eq(schema.certificates.certId, certId));
  if (!stored) expect.fail('no certificate');
  expect(await certificateKeys([recent, older]).verifies(stored.signature, stored.content)).toBe(true);
  expect(await certificateKeys([recent]).verifies(stored.signature, stored.content)).toBe(false);
});

test('each change of a list is recorded once, with who, why, from which keys to which', async () => {
  const [one, two] = [newKey('one'), newKey('two')];
  const steps: KeyRing['encryptionKeys'][] = [[one], [one, two], [two, one], [two, one], [two]];
  for (const keys of steps) expect(await opsWith(rotated(...keys), 'record', ...ACT)).toBe(0);
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
  printed = [];
  await opsWith(rotated(two), 'list');
  expect(printed[0]).toMatch(/^ENCRYPTION_KEYS: recorded by ana at /);
  printed = [];
  await opsWith(rotated(one, two), 'list');
  expect(printed[0]).toBe('ENCRYPTION_KEYS: NOT RECORDED, was two: npm run ops -- keys record');
});

test('no command shows a key, and no audit entry holds one', async () => {
  const shown: string[] = [];
  for (const args of [['list'], ['record', ...ACT], ['reseal', ...ACT]]) {
    await opsWith(rotated(newKey('quiet'), OLD), ...args);
    shown.push(...printed);
  }
  const text = shown.join('\n') + JSON.stringify(await api.connection.db.select().from(schema.auditEntries));
  const secrets = [OLD, TEST_SECRETS.signing].flatMap(({ key }) =>
    (['hex', 'base64', 'base64url'] as const).map((encoding) => key.toString(encoding)),
  );
  for (const secret of [...secrets, TEST_SECRETS.apiKeyPepper.secret]) expect(text).not.toContain(secret);
});
