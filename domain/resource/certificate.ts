/** A certificate as the `certificate.issued` event shows it (contract §7, §11). */
import type { Certificate } from '../certificate.ts';

/** What a read answers without its `timeline`, and what names the certificate. `sha256` is the digest of its bytes. */
export function certificateEventData({ certId, content, sha256 }: Certificate, issuedAt: Date) {
  const { timeline: _timeline, ...shown }: Record<string, unknown> = JSON.parse(content);
  return { cert_id: certId, sha256, issued_at: issuedAt.toISOString(), ...shown };
}
