/** The public keys of certificates (contract §7): published as a JWKS, and used to verify signatures. */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { createLocalJWKSet, errors, flattenedVerify } from 'jose';
import type { NamedKey } from '../../config/environment.ts';
import { PKCS8_HEAD_HEX } from '../../domain/certificate.ts';

type CertificateJwk = {
  readonly kty: 'OKP';
  readonly crv: 'Ed25519';
  readonly x: string;
  readonly kid: string;
  readonly use: 'sig';
  readonly alg: 'EdDSA';
};

export type CertificateKeys = {
  /** Every key that may have signed a certificate; the active one is the first. */
  readonly jwks: { readonly keys: CertificateJwk[] };
  /** Whether one of these keys made this detached JWS over exactly these bytes. */
  verifies(signature: string, content: Buffer): Promise<boolean>;
};

/**
 * `<header>..<signature>`: a detached JWS has no payload between the dots. The last digit of a 64-byte signature
 * carries only two bits. Other digits are refused, so that one signature has one spelling.
 */
const DETACHED_JWS = /^(?<header>[A-Za-z0-9_-]+)\.\.(?<value>[A-Za-z0-9_-]{85}[AQgw])$/;

export function certificateKeys(named: readonly NamedKey[]): CertificateKeys {
  const jwks = { keys: named.map(publicJwk) };
  const keySet = createLocalJWKSet(jwks);
  return {
    jwks,
    async verifies(signature, content) {
      const { header, value } = DETACHED_JWS.exec(signature)?.groups ?? {};
      if (header === undefined || value === undefined) return false;
      try {
        await flattenedVerify({ protected: header, payload: content, signature: value }, keySet, {
          algorithms: ['EdDSA'],
        });
        return true;
      } catch (error) {
        if (error instanceof errors.JOSEError) return false;
        throw error;
      }
    },
  };
}

function publicJwk({ id, key }: NamedKey): CertificateJwk {
  const head = Buffer.from(PKCS8_HEAD_HEX, 'hex');
  const publicKey = createPublicKey(
    createPrivateKey({ key: Buffer.concat([head, key]), format: 'der', type: 'pkcs8' }),
  );
  return {
    kty: 'OKP',
    crv: 'Ed25519',
    x: publicKey.export({ format: 'jwk' }).x ?? '',
    kid: id,
    use: 'sig',
    alg: 'EdDSA',
  };
}
