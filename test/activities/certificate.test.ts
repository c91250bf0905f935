/** Evidence certificates (contract §7): their bytes, their signature, and when they are issued. */
import { createHash, createPublicKey, type JsonWebKey, verify } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { createLocalJWKSet, flattenedVerify } from 'jose';
import { describe, expect } from 'vitest';
import { createCertifier, issueCertificate } from '../../activities/certificate.ts';
import { certificateKeys } from '../../api/http/certificate-key.ts';
import type { Tx } from '../../db/client.ts';
import { newId } from '../../db/id.ts';
import { certificates, events, organizations } from '../../db/schema/index.ts';
import type { CertificateFacts } from '../../domain/certificate.ts';
import type { Settlement } from '../../domain/settlement/state.ts';
import { certificateFacts } from '../support/certificate.ts';
import { untilBlocked } from '../support/database.ts';
import { FILE, withDatabase } from '../support/fixture.ts';
import { insertSettledSettlement } from '../support/settlement.ts';
import { whileWritesFail } from './failing-write.ts';

const KEY = { id: 'test-1', key: Buffer.alloc(32, 7) };
const OTHER_KEY = { id: 'test-2', key: Buffer.alloc(32, 9) };
const certifier = createCertifier([KEY]);

const ISSUANCE = { at: new Date('2026-11-21T08:00:04.000Z'), requestId: 'req-1' };

const test = withDatabase(5)
  .extend('orgId', FILE, async ({ connection }) => {
    const orgId = newId();
    await connection.db.insert(organizations).values({
      orgId,
      kind: 'partner',
      name: 'Acme',
      country: 'JM',
      contactEmail: 'dev@acme.example',
      environment: 'local sandbox',
      createdAt: new Date(),
    });
    return orgId;
  })
  .extend('world', FILE, ({ connection, orgId }) => {
    const { db } = connection;
    const issueIn = (tx: Tx, settlement: Settlement) => issueCertificate(tx, certifier, settlement, ISSUANCE);
    return {
      /** A settlement that has settled and has no certificate yet. */
      settle: () => insertSettledSettlement(db, orgId),
      issueIn,
      issue: (settlement: Settlement) => db.transaction((tx) => issueIn(tx, settlement)),
      /** The settlement's certificates, and the events about them. */
      storedOf: async ({ settlementId }: Settlement) => ({
        certificates: await db.select().from(certificates).where(sql`settlement_id = ${settlementId}`),
        events: await db
          .select()
          .from(events)
          .where(
            sql`type = 'certificate.issued'
              AND convert_from(body, 'UTF8')::jsonb -> 'data' ->> 'settlement_id' = ${settlementId}`,
          ),
      }),
    };
  });

/** The same object with its members in reverse order. */
const reversed = <Value extends object>(value: Value): Value =>
  Object.assign(
    {},
    ...Object.entries(value)
      .reverse()
      .map(([name, member]) => ({ [name]: member })),
  );

describe('a certificate', () => {
  test('has these bytes, this id and this signature, in every version of this service', async () => {
    // Computed with other programs: the digest by Python's sorted JSON and hashlib, the signature by openssl.
    const sealed = await certifier.certify(certificateFacts());
    expect(sealed.sha256.toString('hex')).toBe('8fb11f5db95cb63dbacedce3f8b15a777d250ccbb7bc38094f5f29eecea83ec4');
    expect(sealed.certId).toBe('CERT-8FB11F5DB95CB63DBACEDCE3F8B15A77');
    expect(sealed.signature.split('..')).toEqual([
      'eyJhbGciOiJFZERTQSIsImtpZCI6InRlc3QtMSIsImI2NCI6ZmFsc2UsImNyaXQiOlsiYjY0Il19',
      'NWxQ0u4JrObaGDoCS6mrioPDLA2_VMc7jLPLbWngYBTPGMOThbLifs4WGTbOY_6Aewp9vDQpegpA-xU2kOEpBw',
    ]);
  });

  test('is the same for the same facts, in any order of their members', async () => {
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

  test('is different for different facts', async () => {
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

  test('is verified by jose, and by node:crypto over header, dot and bytes', async () => {
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

describe('issuing a certificate', () => {
  test.for(['certificates', 'events'])(
    'writes nothing when a write to %s fails, and issues when it is retried',
    async (table, { world, owner }) => {
      const settlement = await world.settle();
      await whileWritesFail(owner.pool, table, () => expect(world.issue(settlement)).rejects.toThrow());
      expect(await world.storedOf(settlement)).toEqual({ certificates: [], events: [] });
      const certId = await world.issue(settlement);
      expect(await world.storedOf(settlement)).toMatchObject({
        certificates: [{ certId }],
        events: [{ objectId: certId }],
      });
    },
  );

  test('writes nothing when the transaction that settles is rolled back', async ({ world, connection }) => {
    const settlement = await world.settle();
    const lost = connection.db.transaction(async (tx) => {
      await world.issueIn(tx, settlement);
      tx.rollback();
    });
    await expect(lost).rejects.toThrow();
    expect(await world.storedOf(settlement)).toEqual({ certificates: [], events: [] });
  });

  test('stores the bytes under their digest, and records one event without the content', async ({ world, orgId }) => {
    const settlement = await world.settle();
    const certId = await world.issue(settlement);
    const stored = await world.storedOf(settlement);
    const [certificate] = stored.certificates;
    const sha256 = createHash('sha256')
      .update(certificate?.content ?? '')
      .digest();
    expect(certificate).toMatchObject({ certId, orgId, sha256, issuedAt: ISSUANCE.at });
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

  test('twice gives the same id, the same bytes and one event, even after a key rotation', async ({
    world,
    connection,
  }) => {
    const settlement = await world.settle();
    const certId = await world.issue(settlement);
    const before = await world.storedOf(settlement);
    const rotated = createCertifier([OTHER_KEY, KEY]);
    const later = { at: new Date('2026-12-01T00:00:00.000Z'), requestId: 'req-2' };
    expect(await connection.db.transaction((tx) => issueCertificate(tx, rotated, settlement, later))).toBe(certId);
    expect(await world.storedOf(settlement)).toEqual(before);
    expect(before.certificates).toHaveLength(1);
    expect(before.events).toHaveLength(1);
  });

  test('keeps the issued certificate, whatever is booked later', async ({ world, connection }) => {
    const settlement = await world.settle();
    const certId = await world.issue(settlement);
    await connection.db.execute(
      sql`INSERT INTO postings VALUES
        (${settlement.settlementId}, 'surplus:late', 0, 'card_clearing', 'USD', 5, now()),
        (${settlement.settlementId}, 'surplus:late', 1, 'refund_due', 'USD', -5, now())`,
    );
    expect(await world.issue(settlement)).toBe(certId);
    expect((await world.storedOf(settlement)).events).toHaveLength(1);
  });

  test('gives one certificate and one event to two at once: the second waits and gets the same id', async ({
    world,
    connection,
  }) => {
    const settlement = await world.settle();
    let second: Promise<string> | undefined;
    const first = await connection.db.transaction(async (tx) => {
      const certId = await world.issueIn(tx, settlement);
      second = world.issue(settlement);
      await untilBlocked(connection.pool, 1);
      return certId;
    });
    expect(await second).toBe(first);
    const stored = await world.storedOf(settlement);
    expect(stored.certificates).toHaveLength(1);
    expect(stored.events).toHaveLength(1);
  });
});
