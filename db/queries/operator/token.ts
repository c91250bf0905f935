/** Operators and the hashes of their tokens. A revoked operator stays, for the entries that name it. */
import { and, asc, count, eq, inArray, isNull, ne, sql } from 'drizzle-orm';
import type { EnvironmentName } from '../../../domain/runtime.ts';
import type { Queryable, Tx } from '../../client.ts';
import { operators } from '../../schema/operator.ts';
import { organizations } from '../../schema/organization.ts';

export type Operator = typeof operators.$inferSelect;
export type TokenHash = Pick<Operator, 'tokenHash' | 'pepperId'>;

const isActive = isNull(operators.revokedAt);

/** The active operator with one of these hashes of its token, one for each pepper. */
export async function findOperatorByToken(db: Queryable, hashes: readonly TokenHash[]): Promise<Operator | undefined> {
  const [row] = await db
    .select()
    .from(operators)
    .where(
      and(
        inArray(
          operators.tokenHash,
          hashes.map(({ tokenHash }) => tokenHash),
        ),
        isActive,
      ),
    );
  return row;
}

/** Keeps the operators as they are until the transaction ends: one is added or revoked after the other. */
export async function lockOperators(tx: Tx): Promise<void> {
  await tx.execute(sql`SELECT pg_advisory_xact_lock(hashtextextended('operators', 0))`);
}

export async function findOperator(tx: Tx, name: string): Promise<Operator | undefined> {
  const [row] = await tx
    .select()
    .from(operators)
    .where(and(eq(operators.name, name), isActive));
  return row;
}

/** `ever` counts revoked operators too. */
export async function countOperators(db: Queryable): Promise<{ readonly active: number; readonly ever: number }> {
  const [row] = await db
    .select({ ever: count(), active: sql<number>`(count(*) FILTER (WHERE revoked_at IS NULL))::int` })
    .from(operators);
  return row ?? { active: 0, ever: 0 };
}

/** Whether the database has an organization of another environment. */
export async function hasOtherEnvironment(db: Queryable, own: EnvironmentName): Promise<boolean> {
  const { orgId, environment } = organizations;
  const found = await db.select({ orgId }).from(organizations).where(ne(environment, own)).limit(1);
  return found.length > 0;
}

/** How many tokens of active operators are hashed with each pepper. */
export const countOperatorsByPepper = (db: Queryable) =>
  db
    .select({ pepperId: operators.pepperId, count: count() })
    .from(operators)
    .where(isActive)
    .groupBy(operators.pepperId);

export async function insertOperator(tx: Tx, operator: Omit<Operator, 'revokedBy' | 'revokedAt'>): Promise<void> {
  await tx.insert(operators).values(operator);
}

export async function setOperatorRevoked(tx: Tx, name: string, by: string, at: Date): Promise<void> {
  await tx
    .update(operators)
    .set({ revokedBy: by, revokedAt: at })
    .where(and(eq(operators.name, name), isActive));
}

/** Moves a token to another pepper. */
export async function setTokenHash(db: Queryable, operatorId: string, hash: TokenHash): Promise<void> {
  await db.update(operators).set(hash).where(eq(operators.operatorId, operatorId));
}

/** Without the hashes. */
export const listOperators = (db: Queryable) =>
  db
    .select({
      name: operators.name,
      addedBy: operators.addedBy,
      addedAt: operators.addedAt,
      revokedBy: operators.revokedBy,
      revokedAt: operators.revokedAt,
    })
    .from(operators)
    .orderBy(asc(operators.addedAt), asc(operators.operatorId));
