/** Requests to erase a recipient, under the recipient's lock, and what carries one out. */
import { and, desc, eq, gt, isNull, sql } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import type { Tx } from '../client.ts';
import { newId } from '../id.ts';
import { recipientErasures, recipients } from '../schema/recipient.ts';
import { settlements } from '../schema/settlement.ts';
import { lockRecipientRow } from './recipient.ts';
import { isOpenSettlement } from './settlement.ts';

type RecipientErasure = typeof recipientErasures.$inferSelect;

/** Waits for the decisions that share the recipient. @throws DomainError `not_found` */
export async function lockRecipientToErase(tx: Tx, recipientId: string) {
  const [owner] = await tx
    .select({ orgId: recipients.orgId })
    .from(recipients)
    .where(eq(recipients.recipientId, recipientId));
  if (!owner) throw new DomainError('not_found');
  return await lockRecipientRow(tx, owner.orgId, recipientId);
}

export async function hasOpenSettlement(tx: Tx, orgId: string, recipientId: string): Promise<boolean> {
  const [open] = await tx
    .select({ settlementId: settlements.settlementId })
    .from(settlements)
    .where(and(eq(settlements.orgId, orgId), eq(settlements.recipientId, recipientId), isOpenSettlement))
    .limit(1);
  return open !== undefined;
}

/** The request that can be confirmed at `at`. */
export async function findOpenErasure(tx: Tx, recipientId: string, at: Date): Promise<RecipientErasure | undefined> {
  const { confirmedBy, expiresAt, requestedAt } = recipientErasures;
  const [row] = await tx
    .select()
    .from(recipientErasures)
    .where(and(eq(recipientErasures.recipientId, recipientId), isNull(confirmedBy), gt(expiresAt, at)))
    .orderBy(desc(requestedAt))
    .limit(1);
  return row;
}

export async function insertErasure(
  tx: Tx,
  request: Omit<RecipientErasure, 'erasureId' | 'confirmedBy'>,
): Promise<void> {
  await tx.insert(recipientErasures).values({ ...request, erasureId: newId() });
}

export async function confirmErasure(tx: Tx, erasureId: string, confirmedBy: string): Promise<void> {
  await tx.update(recipientErasures).set({ confirmedBy }).where(eq(recipientErasures.erasureId, erasureId));
}

/** Also empties the metadata: it may have what the partner wrote about the person. */
export async function destroyDataKey(tx: Tx, recipientId: string, at: Date): Promise<void> {
  await tx
    .update(recipients)
    .set({
      dataKeySealed: null,
      personalDataSealed: null,
      metadata: {},
      erasedAt: at,
      updatedAt: sql`greatest(${recipients.updatedAt}, ${at.toISOString()}::timestamptz)`,
    })
    .where(eq(recipients.recipientId, recipientId));
}
