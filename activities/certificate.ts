/**
 * Issues evidence certificates (contract §7). The bytes are canonical and named by their digest; the signature
 * stands beside them, so that they are the same whichever key signs.
 */
import { createHash, createPrivateKey, sign } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { Tx } from '../db/client.ts';
import { insertCertificate, listCertificateFacts } from '../db/queries/certificate.ts';
import { recordFirstEvent } from '../db/queries/event.ts';
import {
  type CertificateFacts,
  certificateContent,
  certificateId,
  certificateResource,
} from '../domain/certificate.ts';
import type { Settlement } from '../domain/settlement.ts';

/** An Ed25519 seed of 32 bytes and the name its public half has in the JWKS. */
export type SigningKey = { readonly id: string; readonly key: Buffer };

type SealedCertificate = {
  readonly certId: string;
  /** RFC 8785 canonical JSON, UTF-8. */
  readonly content: Buffer;
  readonly sha256: Buffer;
  /** Detached JWS over `content` as it is (RFC 7797): `<header>..<signature>`. */
  readonly signature: string;
};

export type Certifier = {
  /** The same facts always give the same certificate. */
  certify(facts: CertificateFacts): SealedCertificate;
};

/** The fixed head of a PKCS#8 Ed25519 key (RFC 8410); the seed follows. */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');

/** @param keys the first one signs; the others only verify, elsewhere */
export function createCertifier([active]: readonly [SigningKey, ...SigningKey[]]): Certifier {
  const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, active.key]), format: 'der', type: 'pkcs8' });
  const header = Buffer.from(JSON.stringify({ alg: 'EdDSA', kid: active.id, b64: false, crit: ['b64'] })).toString(
    'base64url',
  );
  return {
    certify(facts) {
      const content = Buffer.from(canonicalize(certificateContent(facts)) ?? '');
      const sha256 = createHash('sha256').update(content).digest();
      const signature = sign(null, Buffer.concat([Buffer.from(`${header}.`), content]), privateKey).toString(
        'base64url',
      );
      return { certId: certificateId(sha256.toString('hex')), content, sha256, signature: `${header}..${signature}` };
    },
  };
}

/**
 * Issues the certificate of a settlement that has just moved to `settled` in this transaction, under its lock:
 * stores it and tells of it. Once issued, it only answers; the caller names it in the settlement.
 *
 * @param settlement as it stands once settled
 * @param issuance `at` on the settlement's own clock
 * @returns the id of the settlement's one certificate
 */
export async function issueCertificate(
  tx: Tx,
  certifier: Certifier,
  settlement: Settlement,
  issuance: { readonly at: Date; readonly requestId: string },
): Promise<string> {
  const { orgId, settlementId, environment } = settlement;
  const sealed = certifier.certify({ settlement, ...(await listCertificateFacts(tx, settlementId)) });
  const { certificate, inserted } = await insertCertificate(tx, {
    ...sealed,
    orgId,
    settlementId,
    issuedAt: issuance.at,
  });
  const { certId, sha256, issuedAt } = certificate;
  if (inserted) {
    await recordFirstEvent(tx, {
      orgId,
      objectType: 'certificate',
      objectId: certId,
      type: 'certificate.issued',
      data: certificateResource({
        certId,
        orgId,
        settlementId,
        sha256Hex: sha256.toString('hex'),
        environment,
        issuedAt,
      }),
      ...issuance,
    });
  }
  return certId;
}
