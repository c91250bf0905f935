import { createHash, randomBytes } from 'node:crypto';
import { createLocalJWKSet, flattenedVerify } from 'jose';
import PDFDocument from 'pdfkit';
import { Agent, cacheStores, interceptors, request } from 'undici';
import { describe, expect, vi } from 'vitest';
import { createCertifier } from '../../activities/certificate.ts';
import { certificateKeys } from '../../api/http/certificate-key.ts';
import { readSigned, verifyCertificate } from '../../clients/typescript/certificate.ts';
import { getCertificate } from '../../db/queries/certificate.ts';
import { REQUEST_WEIGHTS } from '../../domain/rate-limit.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { otherTexts } from '../support/certificate.ts';
import { withoutTriggers } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { insertCertifiedSettlement, type SettledOptions } from '../support/settlement.ts';

const OLD_KEY = { id: '2025', key: randomBytes(32) };
const NEW_KEY = { id: '2026', key: randomBytes(32) };
const UNKNOWN = `CERT-${'0'.repeat(32)}`;
const CHECKS_PASSED = {
  exists: true,
  digest_matches_id: true,
  settlement_matches: true,
  signature_valid: true,
  ledger_balanced: true,
};

const test = withApi({ scope: 'read', deps: { certificateKeys: certificateKeys([NEW_KEY, OLD_KEY]) } })
  .extend(
    'download',
    FILE,
    ({ api, partner }) =>
      (certId: string, headers: Record<string, string> = {}) =>
        api.call(partner, 'GET', `/v1/caribbean/certificate/${certId}`, undefined, headers),
  )
  .extend(
    'verify',
    FILE,
    ({ api, partner }) =>
      (certId: string, settlementId: string) =>
        api.call(partner, 'GET', `/v1/caribbean/certificate/${certId}/verify?settlement_id=${settlementId}`),
  );

const certified = (
  api: TestApi,
  owner: Caller,
  options: SettledOptions = {},
  keys: Parameters<typeof createCertifier>[0] = [NEW_KEY, OLD_KEY],
) => insertCertifiedSettlement(api.connection.db, owner.orgId, { ...options, certifier: createCertifier(keys) });

/** Changes permanent rows. */
const tamper = (api: TestApi, statement: string, parameters: unknown[]) =>
  withoutTriggers(api.owner.pool, (client) => client.query(statement, parameters));

describe('the download of a certificate', () => {
  test('200 with the stored bytes, their digest and a signature that jose verifies', async ({
    api,
    partner,
    download,
  }) => {
    const { settlement, certId } = await certified(api, partner);
    const response = await download(certId);
    const stored = await getCertificate(api.connection.db, partner.orgId, certId);
    expect(response.statusCode).toBe(200);
    expect(response.rawPayload.equals(stored.content)).toBe(true);
    const sha256 = createHash('sha256').update(response.rawPayload).digest('hex');
    expect(certId).toBe(`CERT-${sha256.slice(0, 32).toUpperCase()}`);
    expect(response.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(response.rawPayload.length),
      'content-disposition': `attachment; filename="${certId}.json"`,
      'cache-control': 'private, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
      etag: `"${sha256}"`,
    });
    const [header = '', , signature = ''] = String(response.headers['x-certificate-signature']).split('.');
    const jwks = (await api.call(null, 'GET', '/.well-known/jwks.json')).json();
    await flattenedVerify({ protected: header, payload: response.rawPayload, signature }, createLocalJWKSet(jwks), {
      algorithms: ['EdDSA'],
    });
    expect(response.json()).toMatchObject({
      settlement_id: settlement.settlementId,
      org_id: partner.orgId,
      simulation: true,
      anchor: { status: 'unanchored' },
    });
  });

  test('200 with one signed file, which the offline verifier accepts, without the payee or the reference', async ({
    api,
    partner,
    download,
  }) => {
    const { certId } = await certified(api, partner, { reference: 'rent for Marisol' });
    const response = await download(certId, { accept: 'application/jose+json' });
    expect(response.headers).toMatchObject({
      'content-type': 'application/jose+json',
      'content-disposition': `attachment; filename="${certId}.jose.json"`,
      etag: `"${createHash('sha256').update(response.rawPayload).digest('hex')}"`,
    });
    const jwks = (await api.call(null, 'GET', '/.well-known/jwks.json')).json();
    expect(verifyCertificate({ file: response.rawPayload }, jwks, { certId }).valid).toBe(true);
    // Any JOSE library verifies it as it is.
    await flattenedVerify(response.json(), createLocalJWKSet(jwks), { algorithms: ['EdDSA'] });
    expect(readSigned(response.rawPayload)?.bytes).toEqual(new Uint8Array((await download(certId)).rawPayload));
    expect(response.body).not.toContain('Marisol');
  });

  test('200 with the payee and the reference in the forms for reading, for their owner alone', async ({
    api,
    partner,
    download,
  }) => {
    const name = 'Marisol Quintero';
    const { certId } = await certified(api, partner, { reference: 'rent <of> May 五', recipient: { name } });
    const page = (await download(certId, { accept: 'text/html' })).body;
    expect(page).toContain(name);
    expect(page).toContain('May 五');
    expect(page).not.toContain('rent <of>');
    const [one, again] = [
      await download(certId, { accept: 'application/pdf' }),
      await download(certId, { accept: 'application/pdf' }),
    ];
    expect([one.statusCode, one.rawPayload.equals(again.rawPayload)]).toEqual([200, true]);
    const other = await api.createCaller('full');
    const path = `/v1/caribbean/certificate/${certId}`;
    for (const accept of ['application/json', 'application/jose+json'])
      expect((await download(certId, { accept })).body).not.toContain('Marisol');
    for (const accept of ['text/html', 'application/pdf', 'application/jose+json'])
      expect((await api.call(other, 'GET', path, undefined, { accept })).statusCode).toBe(404);
  });

  test('200 from a cache that several organizations share, for its owner alone', async ({ api, partner, port }) => {
    const { certId } = await certified(api, partner);
    const cached = new Agent().compose(
      interceptors.cache({ type: 'private', store: new cacheStores.MemoryCacheStore() }),
    );
    const url = `http://127.0.0.1:${port}/v1/caribbean/certificate/${certId}`;
    const statusFor = async ({ apiKey }: Caller) => {
      const { statusCode, body } = await request(url, { dispatcher: cached, headers: { 'x-api-key': apiKey } });
      await body.dump();
      return statusCode;
    };
    expect([await statusFor(partner), await statusFor(await api.createCaller('full'))]).toEqual([200, 404]);
    await cached.close();
  });

  test('a PDF costs as much as it takes, and is not made again for a caller that has it', async ({
    api,
    partner,
    download,
  }) => {
    const { certId } = await certified(api, partner);
    const budgetAfter = async (headers: Record<string, string>) => {
      const { ratelimit } = (await download(certId, headers)).headers;
      const [, left, resetSeconds] = /r=(\d+);t=(\d+)/.exec(String(ratelimit)) ?? [];
      return { left: Number(left), resetSeconds: Number(resetSeconds) };
    };
    const both = async () => [await budgetAfter({}), await budgetAfter({ accept: 'application/pdf' })] as const;
    let [json, pdf] = await both();
    // A minute ended between the two.
    if (pdf.resetSeconds > json.resetSeconds) [json, pdf] = await both();
    expect(json.left - pdf.left).toBe(REQUEST_WEIGHTS.certificatePdf);
    const { headers } = await download(certId, { accept: 'application/pdf' });
    const made = vi.spyOn(PDFDocument.prototype, 'end');
    const again = await download(certId, { accept: 'application/pdf', 'if-none-match': String(headers.etag) });
    expect([again.statusCode, again.headers.etag]).toEqual([304, headers.etag]);
    expect(made).not.toHaveBeenCalled();
    expect((await download(certId, { accept: 'application/pdf', 'if-none-match': '"other"' })).statusCode).toBe(200);
    expect(made).toHaveBeenCalledTimes(1);
    made.mockRestore();
  });

  test('200 if If-None-Match has another tag; 404 for an unknown certificate even with *', async ({
    api,
    partner,
    download,
  }) => {
    const { certId } = await certified(api, partner);
    for (const condition of ['"other"', 'nonsense', ''])
      expect((await download(certId, { 'if-none-match': condition })).statusCode).toBe(200);
    const { etag } = (await download(certId)).headers;
    const ofAnotherForm = { accept: 'application/pdf', 'if-none-match': String(etag) };
    expect((await download(certId, ofAnotherForm)).statusCode).toBe(200);
    expect((await download(UNKNOWN, { 'if-none-match': '*' })).statusCode).toBe(404);
  });
});

describe('the verification of a certificate', () => {
  test('200 and valid for the settlement of the certificate', async ({ api, partner, verify }) => {
    const { settlement, certId } = await certified(api, partner);
    const response = await verify(certId, settlement.settlementId);
    expect(response.statusCode).toBe(200);
    expect(response.headers['cache-control']).toBe('no-store');
    expect(response.json()).toEqual({
      cert_id: certId,
      settlement_id: settlement.settlementId,
      valid: true,
      checks: CHECKS_PASSED,
      anchor: { status: 'unanchored' },
      environment: 'local sandbox',
    });
  });

  test('200 and not valid for every other settlement id', async ({ api, partner, verify }) => {
    const [one, other, foreign] = [
      await certified(api, partner),
      await certified(api, partner),
      await certified(api, await api.createCaller()),
    ];
    const unknown = `stl_${'a'.repeat(32)}`;
    for (const settlementId of [other.settlement.settlementId, foreign.settlement.settlementId, unknown, 'stl_none']) {
      const response = await verify(one.certId, settlementId);
      expect(response.statusCode).toBe(200);
      // Exactly so: another organization's settlement is told from an unknown one by nothing.
      expect(response.json()).toEqual({
        cert_id: one.certId,
        settlement_id: settlementId,
        valid: false,
        checks: { ...CHECKS_PASSED, settlement_matches: false },
        anchor: { status: 'unanchored' },
        environment: 'local sandbox',
      });
    }
  });
});

describe('a rotation of the signing key', () => {
  test('keeps old certificates valid while their key is published, and serves the active key first', async ({
    api,
    partner,
    verify,
  }) => {
    const [old, recent] = [await certified(api, partner, {}, [OLD_KEY]), await certified(api, partner)];
    for (const { certId, settlement } of [old, recent])
      expect((await verify(certId, settlement.settlementId)).json()).toMatchObject({ valid: true });
    const response = await api.call(null, 'GET', '/.well-known/jwks.json');
    expect(response.statusCode).toBe(200);
    expect(response.json().keys.map(({ kid }: { kid: string }) => kid)).toEqual(['2026', '2025']);
  });

  test('the key set has only public keys', async ({ api }) => {
    const { keys } = (await api.call(null, 'GET', '/.well-known/jwks.json')).json();
    for (const key of keys)
      expect(new Set(Object.keys(key))).toEqual(new Set(['alg', 'crv', 'kid', 'kty', 'use', 'x']));
  });

  test.for([
    ['an unpublished key', 'forgotten'],
    ['another key under our key id', NEW_KEY.id],
  ] as const)('a certificate signed by %s is not valid', async ([_what, id], { api, partner, verify }) => {
    const { certId, settlement } = await certified(api, partner, {}, [{ id, key: randomBytes(32) }]);
    expect((await verify(certId, settlement.settlementId)).json()).toMatchObject({
      valid: false,
      checks: { ...CHECKS_PASSED, signature_valid: false },
    });
  });
});

describe('a tampered database', () => {
  test('is detected at every character of the signature', async ({ api, partner }) => {
    const { certId } = await certified(api, partner);
    const { signature, content } = await getCertificate(api.connection.db, partner.orgId, certId);
    expect(await api.deps.certificateKeys.verifies(signature, content)).toBe(true);
    for (const other of otherTexts(signature))
      expect(await api.deps.certificateKeys.verifies(other, content), other).toBe(false);
    for (const malformed of [
      '',
      '..',
      'x',
      signature.slice(0, -1),
      `${signature}A`,
      signature.replace('..', `.${content.toString('base64url')}.`),
    ]) {
      expect(await api.deps.certificateKeys.verifies(malformed, content)).toBe(false);
    }
  });

  test('is detected when two certificates are swapped, whole or in part', async ({ api, partner, verify }) => {
    const [one, other] = [await certified(api, partner), await certified(api, partner, { amount: '9000.00' })];
    const exchange = (columns: string) =>
      tamper(
        api,
        `UPDATE certificates AS mine
         SET ${columns
           .split(' ')
           .map((name) => `${name} = yours.${name}`)
           .join(', ')}
         FROM certificates AS yours
         WHERE mine.cert_id = ANY($1) AND yours.cert_id = ANY($1) AND mine.cert_id <> yours.cert_id`,
        [[one.certId, other.certId]],
      );
    await api.owner.pool.query('DROP INDEX certificates_settlement');
    const parts = [
      ['content', 'digest_matches_id'],
      ['content sha256', 'digest_matches_id'],
      ['content sha256 signature', 'digest_matches_id'],
      ['sha256', 'digest_matches_id'],
      ['signature', 'signature_valid'],
      ['settlement_id', 'settlement_matches'],
    ] as const;
    for (const [columns, check] of parts) {
      await exchange(columns);
      for (const { certId, settlement } of [one, other]) {
        expect((await verify(certId, settlement.settlementId)).json(), columns).toMatchObject({
          valid: false,
          checks: { [check]: false },
        });
      }
      await exchange(columns);
      expect((await verify(one.certId, one.settlement.settlementId)).json()).toMatchObject({ valid: true });
    }
    await api.owner.pool.query('CREATE UNIQUE INDEX certificates_settlement ON certificates (settlement_id)');
  });

  test('is detected when a certificate is moved to another organization', async ({ api, partner, verify }) => {
    const { certId, settlement } = await certified(api, await api.createCaller());
    await tamper(api, 'UPDATE certificates SET org_id = $2 WHERE cert_id = $1', [certId, partner.orgId]);
    expect((await verify(certId, settlement.settlementId)).json()).toMatchObject({
      valid: false,
      checks: { ...CHECKS_PASSED, settlement_matches: false },
    });
  });

  test('is detected in the journal, although the certificate is unchanged', async ({ api, partner, verify }) => {
    const { certId, settlement } = await certified(api, partner);
    const change = `UPDATE postings SET account = 'refund_due'
      WHERE settlement_id = $1 AND step = 'settled' AND account = 'payout_paid'`;
    await tamper(api, change, [settlement.settlementId]);
    expect((await verify(certId, settlement.settlementId)).json()).toMatchObject({
      valid: false,
      checks: { ...CHECKS_PASSED, ledger_balanced: false },
    });
  });

  test('answers HTML and PDF with a 500 that no cache keeps, until the bytes match the id again', async ({
    api,
    partner,
    download,
  }) => {
    const { certId } = await certified(api, partner);
    const { content } = await getCertificate(api.connection.db, partner.orgId, certId);
    const store = (bytes: Buffer) =>
      tamper(api, 'UPDATE certificates SET content = $2 WHERE cert_id = $1', [certId, bytes]);
    const read = async (accept: string) => {
      const { statusCode, headers } = await download(certId, { accept });
      return [statusCode, headers['cache-control']];
    };
    await store(Buffer.from(content.toString().replace('250.00', '950.00')));
    for (const accept of ['text/html', 'application/pdf']) expect(await read(accept)).toEqual([500, 'no-store']);
    await store(content);
    expect(await read('text/html')).toEqual([200, 'private, max-age=31536000, immutable']);
  });

  test('is detected when the bytes are not JSON, without a 500', async ({ api, partner, verify }) => {
    const { certId, settlement } = await certified(api, partner);
    for (const bytes of [
      Buffer.alloc(0),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('null'),
      Buffer.from('{"postings":1}'),
    ]) {
      await tamper(api, 'UPDATE certificates SET content = $2 WHERE cert_id = $1', [certId, bytes]);
      const response = await verify(certId, settlement.settlementId);
      expect(response.statusCode).toBe(200);
      expect(response.json()).toMatchObject({
        valid: false,
        checks: {
          exists: true,
          digest_matches_id: false,
          settlement_matches: false,
          signature_valid: false,
          ledger_balanced: false,
        },
      });
    }
  });
});
