/** Recipients. For an operator, as object.ts says. */
import { eq } from 'drizzle-orm';
import type { Recipient } from '../../../domain/recipient.ts';
import type { Queryable } from '../../client.ts';
import type { ReadDeps } from '../../data-key.ts';
import { recipients } from '../../schema/recipient.ts';
import { type RecipientRow, toRecipient } from '../recipient.ts';

export async function findRecipientRow(db: Queryable, recipientId: string): Promise<RecipientRow | undefined> {
  const [row] = await db.select().from(recipients).where(eq(recipients.recipientId, recipientId));
  return row;
}

export async function findRecipientObject(
  { db, sealer }: ReadDeps,
  recipientId: string,
): Promise<Recipient | undefined> {
  const row = await findRecipientRow(db, recipientId);
  return row && toRecipient(sealer, row);
}
