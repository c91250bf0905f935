/**
 * Issues evidence certificates (contract §7). A certificate is canonical JSON, and its id is taken from the digest of
 * these bytes. The signature is stored apart from them, so that the bytes do not depend on the key that signs.
 */
import { createHash, createPrivateKey } from 'node:crypto';
import canonicalize from 'canonicalize';
import { FlattenedSign } from 'jose';
import type { Tx } from '../db/client.ts';
import { insertCertificate, listCertificateFacts } from '../db/queries/certificate.ts';
import { type CertificateFacts, certificateContent, certificateId } from '../domain/certificate.ts';
import { certificateResource } from '../domain/resource/certificate.ts';
import type { Settlement } from '../domain/settlement/state.ts';

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

/** The fixed first bytes of a PKCS#8 Ed25519 key (RFC 8410); the seed follows. */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');

/** @param keys the first one signs; the others only verify what they signed before, in the API */
export function createCertifier([active]: readonly [SigningKey, ...SigningKey[]]): Certifier {
  const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, active.key]), format: 'der', type: 'pkcs8' });
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
 * Issues the certificate of a settlement that this transaction has just moved to `settled`, under the settlement's
 * lock. If the settlement has a certificate already, nothing is written.
 *
 * @param settlement as it is after the move to `settled`
 * @param issuance `at` by the settlement's own clock
 * @returns the id of the settlement's only certificate
 */
export async function issueCertificate(
  tx: Tx,
  certifier: Certifier,
  settlement: Settlement,
  issuance: { readonly at: Date; readonly requestId: string },
): Promise<string> {
  const { orgId, settlementId, environment } = settlement;
  const sealed = await certifier.certify({ settlement, ...(await listCertificateFacts(tx, settlementId)) });
  const row = { ...sealed, orgId, settlementId, issuedAt: issuance.at };
  const shown = { ...row, sha256Hex: sealed.sha256.toString('hex'), environment };
  const { certId } = await insertCertificate(tx, row, {
    orgId,
    data: certificateResource(shown),
    ...issuance,
  });
  return certId;
}
