/** The public halves of the keys that sign certificates, as a JWKS and for verification (contract §7). */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import type { NamedKey } from '../config.ts';

export type CertificateKeys = {
  readonly jwks: {
    readonly keys: readonly {
      readonly kty: 'OKP';
      readonly crv: 'Ed25519';
      readonly x: string;
      readonly kid: string;
      readonly use: 'sig';
      readonly alg: 'EdDSA';
    }[];
  };
  find(kid: string): KeyObject | undefined;
};

/** The fixed head of a PKCS#8 Ed25519 key (RFC 8410); the seed follows. */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');

export function certificateKeys(named: readonly NamedKey[]): CertificateKeys {
  const publicKeys = named.map(({ id, key }) => ({
    id,
    key: createPublicKey(createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, key]), format: 'der', type: 'pkcs8' })),
  }));
  return {
    jwks: {
      keys: publicKeys.map(({ id, key }) => ({ kty: 'OKP', crv: 'Ed25519', x: key.export({ format: 'jwk' }).x ?? '', kid: id, use: 'sig', alg: 'EdDSA' })),
    },
    find: (kid) => publicKeys.find(({ id }) => id === kid)?.key,
  };
}
