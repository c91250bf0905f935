import { createHash, createPublicKey, type JsonWebKey, verify } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { createLocalJWKSet, flattenedVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCertifier, issueCertificate } from '../../activities/certificate.ts';
import { certificateKeys } from '../../api/http/certificate-key.ts';
import { type Connection, connect, type Tx } from '../../db/client.ts';
import { newId } from '../../db/id.ts';
import { certificates, events, organizations } from '../../db/schema/index.ts';
import type { CertificateFacts } from '../../domain/certificate.ts';
import type { Settlement } from '../../domain/settlement.ts';
import { certificateFacts } from '../support/certificate.ts';
import { untilBlocked } from '../support/database.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { insertSettledSettlement } from '../support/settlement.ts';

const KEY = { id: 'test-1', key: Buffer.alloc(32, 7) };
const OTHER_KEY = { id: 'test-2', key: Buffer.alloc(32, 9) };
const certifier = createCertifier([KEY]);

/** The same object with its members in reverse order. */
const reversed = <Value extends object>(value: Value): Value =>
  Object.assign(
    {},
    ...Object.entries(value)
      .reverse()
      .map(([name, member]) => ({ [name]: member })),
  );

describe('a certificate', () => {
  test('is these bytes, this id and this signature, in every version of this service', async () => {
    // Confirmed by other hands: Python's sorted JSON and hashlib give the digest, openssl the signature.
    const sealed = await certifier.certify(certificateFacts());
    expect(sealed.sha256.toString('hex')).toBe('7d6e8afa0d55d5eca0153dc281fb804b97463baf058539cd3c2484aaed4baf30');
    expect(sealed.certId).toBe('CERT-7D6E8AFA0D55D5ECA0153DC281FB804B');
    expect(sealed.signature).toBe(
      'eyJhbGciOiJFZERTQSIsImtpZCI6InRlc3QtMSIsImI2NCI6ZmFsc2UsImNyaXQiOlsiYjY0Il19..BV-zk_4L7CtIQ8hyM3_UCpTXgMVy6nzW8vk-Z0O5pTsaqkol3ZKGHqn0mj4_3sEqxXbjPDgw0dQO5_RUNAd_Cw',
    );
  });

  test('is the same for the same facts, in whatever order their members come', async () => {
    const facts = certificateFacts();
    const turned = reversed({
      settlement: reversed(facts.settlement),
      transitions: facts.transitions.map(reversed),
      evidence: facts.evidence.map(reversed),
      postings: facts.postings.map(reversed),
    });
    expect(Object.keys(turned.settlement)[0]).not.toBe(Object.keys(facts.settlement)[0]);
    expect(await certifier.certify(turned)).toEqual(await certifier.certify(facts));
  });

  test('has the same bytes and id whichever key signs; a certifier signs with its first key', async () => {
    const rotated = await createCertifier([OTHER_KEY, KEY]).certify(certificateFacts());
    const { content, certId, signature } = await certifier.certify(certificateFacts());
    expect(rotated).toMatchObject({ content, certId });
    expect(rotated.signature).not.toBe(signature);
    expect(JSON.parse(Buffer.from(rotated.signature.split('.')[0] ?? '', 'base64url').toString())).toEqual({
      alg: 'EdDSA',
      kid: 'test-2',
      b64: false,
      crit: ['b64'],
    });
  });

  test('is another one for other facts', async () => {
    const facts = certificateFacts();
    const others: CertificateFacts[] = [
      { ...facts, settlement: { ...facts.settlement, amountMinor: facts.settlement.amountMinor + 1n } },
      { ...facts, settlement: { ...facts.settlement, settlementId: 'stl_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb' } },
      { ...facts, evidence: facts.evidence.slice(1) },
      { ...facts, postings: facts.postings.slice(2) },
    ];
    const sealed = await Promise.all([facts, ...others].map((each) => certifier.certify(each)));
    expect(new Set(sealed.map(({ certId }) => certId)).size).toBe(sealed.length);
  });

  test('verifies by jose, and by node:crypto over header, dot and bytes', async () => {
    const { content, signature } = await certifier.certify(certificateFacts());
    const { jwks } = certificateKeys([KEY]);
    const [header = '', , value = ''] = signature.split('.');
    await flattenedVerify({ protected: header, payload: content, signature: value }, createLocalJWKSet(jwks));
    const jwk: JsonWebKey = { ...jwks.keys[0] };
    const input = Buffer.concat([Buffer.from(`${header}.`), content]);
    expect(verify(null, input, createPublicKey({ key: jwk, format: 'jwk' }), Buffer.from(value, 'base64url'))).toBe(
      true,
    );
  });
});

describe('issuing', () => {
  let connection: Connection;
  let drop: () => Promise<void>;
  const orgId = newId();

  beforeAll(async () => {
    const database = await createTestDatabase();
    drop = database.drop;
    connection = connect(database.databaseUrl, { poolSizeMax: 5, name: 'test', onIdleError: () => undefined });
    await connection.db.insert(organizations).values({
      orgId,
      kind: 'partner',
      name: 'Acme',
      country: 'JM',
      contactEmail: 'dev@acme.example',
      environment: 'local sandbox',
      createdAt: new Date(),
    });
  });

  afterAll(async () => {
    await connection.close();
    await drop();
  });

  const issuance = { at: new Date('2026-11-21T08:00:04.000Z'), requestId: 'req-1' };
  const issue = (tx: Tx, settlement: Settlement) => issueCertificate(tx, certifier, settlement, issuance);
  const storedOf = async ({ settlementId }: Settlement) => ({
    certificates: await connection.db.select().from(certificates).where(sql`settlement_id = ${settlementId}`),
    events: await connection.db
      .select()
      .from(events)
      .where(
        sql`type = 'certificate.issued' AND convert_from(body, 'UTF8')::jsonb -> 'data' ->> 'settlement_id' = ${settlementId}`,
      ),
  });

  /** Makes the next write to a table fail, in the way a bug or a full disk would. */
  async function whileBroken(table: string, run: () => Promise<unknown>): Promise<void> {
    await connection.db.execute(
      sql.raw(
        `CREATE FUNCTION break_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'broken'; END $$`,
      ),
    );
    await connection.db.execute(
      sql.raw(`CREATE TRIGGER broken BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION break_it()`),
    );
    await expect(run()).rejects.toThrow();
    await connection.db.execute(sql.raw('DROP FUNCTION break_it() CASCADE'));
  }

  test.each(['certificates', 'events'])(
    'leaves nothing when writing to %s fails, and issues when it is run again',
    async (table) => {
      const settlement = await insertSettledSettlement(connection.db, orgId);
      await whileBroken(table, () => connection.db.transaction((tx) => issue(tx, settlement)));
      expect(await storedOf(settlement)).toEqual({ certificates: [], events: [] });
      const certId = await connection.db.transaction((tx) => issue(tx, settlement));
      expect(await storedOf(settlement)).toMatchObject({ certificates: [{ certId }], events: [{ objectId: certId }] });
    },
  );

  test('leaves nothing when the transaction that settles rolls back', async () => {
    const settlement = await insertSettledSettlement(connection.db, orgId);
    const lost = connection.db.transaction(async (tx) => {
      await issue(tx, settlement);
      tx.rollback();
    });
    await expect(lost).rejects.toThrow();
    expect(await storedOf(settlement)).toEqual({ certificates: [], events: [] });
  });

  test('stores the bytes under their digest and tells of it once, without the content', async () => {
    const settlement = await insertSettledSettlement(connection.db, orgId);
    const certId = await connection.db.transaction((tx) => issue(tx, settlement));
    const stored = await storedOf(settlement);
    const [certificate] = stored.certificates;
    const sha256 = createHash('sha256')
      .update(certificate?.content ?? '')
      .digest();
    expect(certificate).toMatchObject({ certId, orgId, sha256, issuedAt: issuance.at });
    expect(stored.events).toHaveLength(1);
    expect(JSON.parse(stored.events[0]?.body.toString() ?? '')).toMatchObject({
      type: 'certificate.issued',
      timestamp: '2026-11-21T08:00:04.000Z',
      sequence: 1,
      data: {
        cert_id: certId,
        org_id: orgId,
        settlement_id: settlement.settlementId,
        sha256: sha256.toString('hex'),
        environment: 'local sandbox',
        simulation: true,
        anchor: { status: 'unanchored' },
        issued_at: '2026-11-21T08:00:04.000Z',
      },
    });
  });

  test('twice gives the same id, the same bytes and one event, even after a key rotation', async () => {
    const settlement = await insertSettledSettlement(connection.db, orgId);
    const certId = await connection.db.transaction((tx) => issue(tx, settlement));
    const before = await storedOf(settlement);
    const rotated = createCertifier([OTHER_KEY, KEY]);
    const later = { at: new Date('2026-12-01T00:00:00.000Z'), requestId: 'req-2' };
    expect(await connection.db.transaction((tx) => issueCertificate(tx, rotated, settlement, later))).toBe(certId);
    expect(await storedOf(settlement)).toEqual(before);
    expect(before.certificates).toHaveLength(1);
    expect(before.events).toHaveLength(1);
  });

  test('keeps the certificate that was issued, whatever was booked since', async () => {
    const settlement = await insertSettledSettlement(connection.db, orgId);
    const certId = await connection.db.transaction((tx) => issue(tx, settlement));
    await connection.db.execute(
      sql`INSERT INTO postings VALUES (${settlement.settlementId}, 'surplus:late', 0, 'card_clearing', 'USD', 5, now()), (${settlement.settlementId}, 'surplus:late', 1, 'refund_due', 'USD', -5, now())`,
    );
    expect(await connection.db.transaction((tx) => issue(tx, settlement))).toBe(certId);
    expect((await storedOf(settlement)).events).toHaveLength(1);
  });

  test('by two at once gives one certificate and one event: the second waits for the first and answers the same', async () => {
    const settlement = await insertSettledSettlement(connection.db, orgId);
    let second: Promise<string> | undefined;
    const first = await connection.db.transaction(async (tx) => {
      const certId = await issue(tx, settlement);
      second = connection.db.transaction((other) => issue(other, settlement));
      await untilBlocked(connection.pool, 1);
      return certId;
    });
    expect(await second).toBe(first);
    const stored = await storedOf(settlement);
    expect(stored.certificates).toHaveLength(1);
    expect(stored.events).toHaveLength(1);
  });
});
