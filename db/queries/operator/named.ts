/**
 * What bears a partner's own name: a reference, an idempotency key, a value of metadata. For an operator, as object.ts
 * says.
 */
import { desc, eq, inArray, type SQL, sql } from 'drizzle-orm';
import type { Queryable } from '../../client.ts';
import { idempotencyKeys } from '../../schema/idempotency-key.ts';
import { recipientMetadata } from '../../schema/recipient.ts';
import { settlements } from '../../schema/settlement.ts';
import { ROWS_MAX } from './object.ts';
import { settlementColumns } from './settlement.ts';

/** The rows of a table whose index begins with the organization: one look into it for each organization. */
const inEachOrganization = (column: SQL, table: SQL, condition: SQL): SQL => sql`(
  SELECT found.id FROM organizations CROSS JOIN LATERAL (
    SELECT ${column} AS id FROM ${table} row WHERE row.org_id = organizations.org_id AND ${condition} OFFSET 0
  ) found)`;

export const hasReference = (reference: string): SQL =>
  inArray(
    settlements.settlementId,
    inEachOrganization(sql`row.settlement_id`, sql`settlements`, sql`row.reference = ${reference}`),
  );

/** A value of metadata has no index of its own: the whole table of metadata is read. */
export async function listNamed(db: Queryable, name: string) {
  return {
    settlements: await db
      .select({ ...settlementColumns, recipientId: settlements.recipientId, orgId: settlements.orgId })
      .from(settlements)
      .where(hasReference(name))
      .orderBy(desc(settlements.createdAt), desc(settlements.settlementId))
      .limit(ROWS_MAX),
    keys: await db
      .select({
        resourceId: idempotencyKeys.resourceId,
        orgId: idempotencyKeys.orgId,
        createdAt: idempotencyKeys.createdAt,
      })
      .from(idempotencyKeys)
      .where(
        sql`${idempotencyKeys.key} = ${name} AND ${idempotencyKeys.orgId} IN ${inEachOrganization(sql`row.org_id`, sql`idempotency_keys`, sql`row.key = ${name}`)}`,
      )
      .orderBy(desc(idempotencyKeys.createdAt))
      .limit(ROWS_MAX),
    recipients: await db
      .select({
        recipientId: recipientMetadata.recipientId,
        key: recipientMetadata.key,
        orgId: recipientMetadata.orgId,
        createdAt: recipientMetadata.createdAt,
      })
      .from(recipientMetadata)
      .where(eq(recipientMetadata.value, name))
      .orderBy(desc(recipientMetadata.createdAt))
      .limit(ROWS_MAX),
  };
}
