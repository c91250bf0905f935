/** Requests to erase a recipient, under the recipient's lock, and what carries one out. */
import { and, desc, eq, gt, isNull } from 'drizzle-orm';
import { notBefore } from '../../domain/clock.ts';
import { DomainError } from '../../domain/error.ts';
import type { Recipient } from '../../domain/recipient.ts';
import type { EnvironmentName } from '../../domain/runtime.ts';
import type { Tx } from '../client.ts';
import { newId } from '../id.ts';
import { organizations } from '../schema/organization.ts';
import { recipientErasures, recipients } from '../schema/recipient.ts';
import { settlements } from '../schema/settlement.ts';
import { lockRecipientRow, type RecipientRow, unopenedRecipient } from './recipient.ts';
import { isOpenSettlement } from './settlement.ts';

type RecipientErasure = typeof recipientErasures.$inferSelect;

/**
 * Waits for the decisions that share the recipient.
 *
 * @returns the recipient, and the kind of the organization that owns it
 * @throws DomainError `not_found`, for a recipient of another environment as well
 */
export async function lockRecipientToErase(tx: Tx, recipientId: string, environment: EnvironmentName) {
  const [owner] = await tx
    .select({ orgId: recipients.orgId, kind: organizations.kind })
    .from(recipients)
    .innerJoin(organizations, eq(organizations.orgId, recipients.orgId))
    .where(and(eq(recipients.recipientId, recipientId), eq(organizations.environment, environment)));
  if (!owner) throw new DomainError('not_found');
  return { locked: await lockRecipientRow(tx, owner.orgId, recipientId), ownerKind: owner.kind };
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

/**
 * Also deactivates the locked recipient, and empties the metadata: it may have what the partner wrote about the person.
 *
 * @returns the recipient as it then is
 */
export async function destroyDataKey(tx: Tx, locked: RecipientRow, at: Date): Promise<Recipient> {
  const erasedAt = notBefore(at, locked.updatedAt);
  const change = {
    dataKeySealed: null,
    personalDataSealed: null,
    metadata: {},
    isActive: false,
    erasedAt,
    updatedAt: erasedAt,
  };
  await tx.update(recipients).set(change).where(eq(recipients.recipientId, locked.recipientId));
  return unopenedRecipient({ ...locked, ...change });
}
