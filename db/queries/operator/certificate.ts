/** Certificates. For an operator, as object.ts says. */
import { eq } from 'drizzle-orm';
import type { Queryable } from '../../client.ts';
import { certificates } from '../../schema/certificate.ts';

export async function findCertificateObject(db: Queryable, certId: string) {
  const [row] = await db
    .select({
      orgId: certificates.orgId,
      settlementId: certificates.settlementId,
      sha256: certificates.sha256,
      signature: certificates.signature,
      issuedAt: certificates.issuedAt,
    })
    .from(certificates)
    .where(eq(certificates.certId, certId));
  return row;
}
