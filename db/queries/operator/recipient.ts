/** Recipients. For an operator, as object.ts says. */
import { eq } from 'drizzle-orm';
import type { Queryable } from '../../client.ts';
import { recipients } from '../../schema/recipient.ts';

export async function findRecipientObject(db: Queryable, recipientId: string) {
  const [row] = await db
    .select({
      orgId: recipients.orgId,
      kind: recipients.kind,
      entityType: recipients.entityType,
      name: recipients.name,
      country: recipients.country,
      email: recipients.email,
      phone: recipients.phone,
      bankDetails: recipients.bankDetails,
      mobileDetails: recipients.mobileDetails,
      isActive: recipients.isActive,
      verificationStatus: recipients.verificationStatus,
      createdAt: recipients.createdAt,
      updatedAt: recipients.updatedAt,
    })
    .from(recipients)
    .where(eq(recipients.recipientId, recipientId));
  return row;
}
