/** Evidence certificates (contract §7): their bytes, their signature, and when they are issued. */
import { createHash } from 'node:crypto';
import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { certified, createCertifier } from '../../activities/certificate.ts';
import { readCertificateFacts } from '../../db/queries/certificate.ts';
import { writeChange } from '../../db/queries/settlement-change.ts';
import { certificates, events } from '../../db/schema/index.ts';
import type { CertificateFacts } from '../../domain/certificate.ts';
import { changeOf, withMove } from '../../domain/settlement/change.ts';
import type { Settlement } from '../../domain/settlement/state.ts';
import { certificateFacts } from '../support/certificate.ts';
import { FILE, withDatabase } from '../support/fixture.ts';
import { insertTestOrganization } from '../support/organization.ts';
import { insertPayingOutSettlement } from '../support/settlement.ts';

const KEY = { id: 'test-1', key: Buffer.alloc(32, 7) };
const OTHER_KEY = { id: 'test-2', key: Buffer.alloc(32, 9) };
const certifier = createCertifier([KEY]);

const test = withDatabase(5)
  .extend('orgId', FILE, async ({ connection }) => (await insertTestOrganization(connection.db)).orgId)
  .extend('world', FILE, ({ connection, orgId }) => {
    const { db } = connection;
    return {
      /** A settlement that has just settled, with its certificate. */
      settled: async (): Promise<Settlement> => {
        const paying = await insertPayingOutSettlement(db, orgId);
        const at = new Date(paying.updatedAt.getTime() + 1_000);
        const move = withMove(changeOf({ settlement: paying, exceptions: [] }, at), { to: 'settled', reason: 'test' });
        return await db.transaction(async (tx) => writeChange(tx, await certified(tx, certifier, move), 'req-1'));
      },
      certificatesOf: ({ settlementId }: Settlement) =>
        db.select().from(certificates).where(eq(certificates.settlementId, settlementId)),
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
});

describe('issuing a certificate', () => {
  test('stores the bytes under their digest, and records one event with what a read answers', async ({
    connection,
    world,
    orgId,
  }) => {
    const settled = await world.settled();
    const { certificateId, updatedAt } = settled;
    const stored = await world.certificatesOf(settled);
    const bytes = stored[0]?.content ?? Buffer.alloc(0);
    const sha256 = createHash('sha256').update(bytes).digest();
    expect(stored).toMatchObject([{ certId: certificateId, orgId, sha256, issuedAt: updatedAt }]);
    const { timeline, ...read } = JSON.parse(bytes.toString());
    expect(timeline.at(-1)).toMatchObject({ status: 'settled', at: updatedAt.toISOString() });
    const recorded = await connection.db
      .select()
      .from(events)
      .where(eq(events.objectId, certificateId ?? ''));
    expect(recorded.map(({ body }) => JSON.parse(body.toString()))).toMatchObject([
      {
        type: 'certificate.issued',
        timestamp: updatedAt.toISOString(),
        sequence: 1,
        data: { cert_id: certificateId, sha256: sha256.toString('hex'), issued_at: updatedAt.toISOString(), ...read },
      },
    ]);
  });

  test('certifies the facts that the database has afterwards', async ({ world, connection }) => {
    const settlement = await world.settled();
    const [stored] = await world.certificatesOf(settlement);
    const facts = await connection.db.transaction((tx) =>
      readCertificateFacts(tx, changeOf({ settlement, exceptions: [] }, settlement.updatedAt)),
    );
    expect((await certifier.certify(facts)).content).toEqual(stored?.content);
  });
});
