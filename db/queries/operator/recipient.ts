/** Recipients. For an operator, as object.ts says. */
import { eq } from 'drizzle-orm';
import type { Recipient } from '../../../domain/recipient.ts';
import type { ReadDeps } from '../../data-key.ts';
import { recipients } from '../../schema/recipient.ts';
import { toRecipient } from '../recipient.ts';

export async function findRecipientObject(
  { db, sealer }: ReadDeps,
  recipientId: string,
): Promise<Recipient | undefined> {
  const [row] = await db.select().from(recipients).where(eq(recipients.recipientId, recipientId));
  return row && toRecipient(sealer, row);
}
