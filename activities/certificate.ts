/**
 * Issues evidence certificates (contract §7). A certificate is canonical JSON, and its id is taken from the digest of
 * these bytes. The signature is stored apart from them, so that the bytes do not depend on the key that signs.
 */
import { createHash, createPrivateKey } from 'node:crypto';
import canonicalize from 'canonicalize';
import { FlattenedSign } from 'jose';
import type { Tx } from '../db/client.ts';
import { readCertificateFacts } from '../db/queries/certificate.ts';
import { type CertificateFacts, certificateContent, certificateId, PKCS8_HEAD_HEX } from '../domain/certificate.ts';
import { isSettling, type SettlementChange, withCertificate } from '../domain/settlement/change.ts';

/** An Ed25519 seed of 32 bytes, and the id of its public key in the JWKS. */
export type SigningKey = { readonly id: string; readonly key: Buffer };

type SealedCertificate = {
  readonly certId: string;
  /** RFC 8785 canonical JSON, UTF-8. */
  readonly content: Buffer;
  readonly sha256: Buffer;
  /** Detached JWS over the unencoded `content` (RFC 7797): `<header>..<signature>`. */
  readonly signature: string;
};

export type Certifier = {
  /** The same facts always give the same certificate. */
  certify(facts: CertificateFacts): Promise<SealedCertificate>;
};

/** @param keys the first one signs; the others only verify what they signed before, in the API */
export function createCertifier([active]: readonly [SigningKey, ...SigningKey[]]): Certifier {
  const head = Buffer.from(PKCS8_HEAD_HEX, 'hex');
  const privateKey = createPrivateKey({ key: Buffer.concat([head, active.key]), format: 'der', type: 'pkcs8' });
  return {
    async certify(facts) {
      const content = Buffer.from(canonicalize(certificateContent(facts)) ?? '');
      const sha256 = createHash('sha256').update(content).digest();
      const { protected: header, signature } = await new FlattenedSign(content)
        .setProtectedHeader({ alg: 'EdDSA', kid: active.id, b64: false, crit: ['b64'] })
        .sign(privateKey);
      return { certId: certificateId(sha256.toString('hex')), content, sha256, signature: `${header}..${signature}` };
    },
  };
}

/**
 * Adds the certificate to a change that settles a settlement, so that they are written together. Any other change stays
 * as it is. Call it under the settlement's lock.
 */
export async function certified(tx: Tx, certifier: Certifier, change: SettlementChange): Promise<SettlementChange> {
  if (!isSettling(change)) return change;
  const { content, sha256, ...sealed } = await certifier.certify(await readCertificateFacts(tx, change));
  return withCertificate(change, { ...sealed, content: content.toString(), sha256: sha256.toString('hex') });
}
