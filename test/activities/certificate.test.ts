/** Evidence certificates (contract §7): their bytes, their signature, and when they are issued. */
import { createHash, createPublicKey, type JsonWebKey, verify } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { createLocalJWKSet, flattenedVerify } from 'jose';
import { describe, expect } from 'vitest';
import { certified, createCertifier } from '../../activities/certificate.ts';
import { certificateKeys } from '../../api/http/certificate-key.ts';
import { newId } from '../../db/id.ts';
import { readCertificateFacts } from '../../db/queries/certificate.ts';
import { findSettlement } from '../../db/queries/settlement.ts';
import { writeChange } from '../../db/queries/settlement-change.ts';
import { certificates, events, organizations } from '../../db/schema/index.ts';
import type { CertificateFacts } from '../../domain/certificate.ts';
import { changeOf, withMove } from '../../domain/settlement/change.ts';
import type { Settlement } from '../../domain/settlement/state.ts';
import { certificateFacts } from '../support/certificate.ts';
import { whileWritesFail } from '../support/database.ts';
import { FILE, withDatabase } from '../support/fixture.ts';
import { insertPayingOutSettlement } from '../support/settlement.ts';

const KEY = { id: 'test-1', key: Buffer.alloc(32, 7) };
const OTHER_KEY = { id: 'test-2', key: Buffer.alloc(32, 9) };
const certifier = createCertifier([KEY]);

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
    return {
      payingOut: () => insertPayingOutSettlement(db, orgId),
      /** Settles it as it was, with its certificate. */
      settle: (paying: Settlement): Promise<Settlement> =>
        db.transaction(async (tx) => {
          const at = new Date(paying.updatedAt.getTime() + 1_000);
          const move = withMove(changeOf({ settlement: paying, exceptions: [] }, at), {
            to: 'settled',
            reason: 'test',
          });
          return await writeChange(tx, await certified(tx, certifier, move), 'req-1');
        }),
      /** The settlement's status and certificates, and the events about them. */
      storedOf: async ({ settlementId }: Pick<Settlement, 'settlementId'>) => ({
        status: (await findSettlement(db, orgId, settlementId))?.status,
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
    'leaves the settlement as it was when a write to %s fails, and issues when it is retried',
    async (table, { world, owner }) => {
      const paying = await world.payingOut();
      await whileWritesFail(owner.pool, table, () => expect(world.settle(paying)).rejects.toThrow());
      expect(await world.storedOf(paying)).toEqual({ status: 'paying_out', certificates: [], events: [] });
      const { certificateId } = await world.settle(paying);
      expect(await world.storedOf(paying)).toMatchObject({
        status: 'settled',
        certificates: [{ certId: certificateId }],
        events: [{ objectId: certificateId }],
      });
    },
  );

  test('stores the bytes under their digest, and records one event with what a read answers', async ({
    world,
    orgId,
  }) => {
    const { settlementId, certificateId, updatedAt } = await world.settle(await world.payingOut());
    const { certificates: stored, events: recorded } = await world.storedOf({ settlementId });
    const bytes = stored[0]?.content ?? Buffer.alloc(0);
    const sha256 = createHash('sha256').update(bytes).digest();
    expect(stored).toMatchObject([{ certId: certificateId, orgId, sha256, issuedAt: updatedAt }]);
    expect(recorded).toHaveLength(1);
    const { timeline, ...read } = JSON.parse(bytes.toString());
    expect(timeline.at(-1)).toMatchObject({ status: 'settled', at: updatedAt.toISOString() });
    expect(JSON.parse(recorded[0]?.body.toString() ?? '')).toMatchObject({
      type: 'certificate.issued',
      timestamp: updatedAt.toISOString(),
      sequence: 1,
      data: { cert_id: certificateId, sha256: sha256.toString('hex'), issued_at: updatedAt.toISOString(), ...read },
    });
  });

  test('certifies the facts that the database has afterwards', async ({ world, connection }) => {
    const settlement = await world.settle(await world.payingOut());
    const { certificates: stored } = await world.storedOf(settlement);
    const facts = await connection.db.transaction((tx) =>
      readCertificateFacts(tx, changeOf({ settlement, exceptions: [] }, settlement.updatedAt)),
    );
    expect((await certifier.certify(facts)).content).toEqual(stored[0]?.content);
  });

  test('happens once: of two that settle at once, the second changes nothing', async ({ world }) => {
    const paying = await world.payingOut();
    const outcomes = await Promise.allSettled([world.settle(paying), world.settle(paying)]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const stored = await world.storedOf(paying);
    expect(stored.certificates).toHaveLength(1);
    expect(stored.events).toHaveLength(1);
  });
});
