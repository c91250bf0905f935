/** A certificate as the `certificate.issued` event shows it (contract §7). */
import { UNANCHORED } from '../certificate.ts';
import type { EnvironmentName } from '../runtime.ts';

/** The data of the event. `sha256` is the digest of the certificate's bytes. */
export const certificateResource = (certificate: {
  readonly certId: string;
  readonly orgId: string;
  readonly settlementId: string;
  readonly sha256Hex: string;
  readonly environment: EnvironmentName;
  readonly issuedAt: Date;
}) => ({
  cert_id: certificate.certId,
  org_id: certificate.orgId,
  settlement_id: certificate.settlementId,
  sha256: certificate.sha256Hex,
  environment: certificate.environment,
  simulation: true as const,
  anchor: UNANCHORED,
  issued_at: certificate.issuedAt.toISOString(),
});
