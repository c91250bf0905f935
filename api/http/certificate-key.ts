/** The public halves of the keys that sign certificates: as a JWKS, and to verify with (contract §7). */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { createLocalJWKSet, errors, flattenedVerify } from 'jose';
import type { NamedKey } from '../../config.ts';

type CertificateJwk = {
  readonly kty: 'OKP';
  readonly crv: 'Ed25519';
  readonly x: string;
  readonly kid: string;
  readonly use: 'sig';
  readonly alg: 'EdDSA';
};

export type CertificateKeys = {
  /** Every key that may have signed a certificate, the active one first. */
  readonly jwks: { readonly keys: CertificateJwk[] };
  /** Whether one of our keys made this detached JWS over exactly these bytes. */
  verifies(signature: string, content: Buffer): Promise<boolean>;
};

/** The fixed head of a PKCS#8 Ed25519 key (RFC 8410); the seed follows. */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');

/**
 * `<header>..<64 bytes>`: nothing between the dots, since the content is the payload. The last digit has two bits
 * to say, so that no other text stands for the same signature.
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
  const publicKey = createPublicKey(
    createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, key]), format: 'der', type: 'pkcs8' }),
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
