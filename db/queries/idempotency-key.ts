/**
 * Idempotency (contract §6): the first use of a key binds it for ever. `INSERT … ON CONFLICT DO NOTHING` under
 * READ COMMITTED is the whole lock: a concurrent duplicate waits for the winner's commit, inserts nothing, and
 * then reads the winner.
 */
import { createHash } from 'node:crypto';
import { and, eq } from 'drizzle-orm';
import type { Queryable, Tx } from '../client.ts';
import { idempotencyKeys } from '../schema/idempotency-key.ts';

export type BoundKey = typeof idempotencyKeys.$inferSelect;

/** What a command is, for comparison: the digest of its exact bytes, and one of each top-level field to name differences. */
export type CommandFingerprint = { readonly requestHash: Buffer; readonly fieldDigests: Record<string, string> };

/** @param route the route's template, so that one key never serves two operations */
export function fingerprintOf(command: {
  method: string;
  route: string;
  bytes: Buffer;
  fields: Readonly<Record<string, unknown>>;
}): CommandFingerprint {
  const requestHash = createHash('sha256')
    .update(`${command.method}\0${command.route}\0`)
    .update(command.bytes)
    .digest();
  const fieldDigests = Object.fromEntries(
    Object.entries(command.fields).map(([name, value]) => [
      name,
      createHash('sha256')
        .update(`${name}\0${JSON.stringify(value)}`)
        .digest('base64url')
        .slice(0, 22),
    ]),
  );
  return { requestHash, fieldDigests };
}

/** The top-level fields in which two commands differ, by name; empty when only the bytes do. */
export function mismatchOf(bound: CommandFingerprint, given: CommandFingerprint): string[] {
  const names = new Set([...Object.keys(bound.fieldDigests), ...Object.keys(given.fieldDigests)]);
  return [...names]
    .filter((name) => bound.fieldDigests[name] !== given.fieldDigests[name])
    .sort((one, other) => (one < other ? -1 : 1));
}

export async function findIdempotencyKey(db: Queryable, orgId: string, key: string): Promise<BoundKey | undefined> {
  const [row] = await db
    .select()
    .from(idempotencyKeys)
    .where(and(eq(idempotencyKeys.orgId, orgId), eq(idempotencyKeys.key, key)))
    .limit(1);
  return row;
}

/** Binds a key; false when another command, committed meanwhile, bound it first. */
export async function bindIdempotencyKey(tx: Tx, bound: BoundKey): Promise<boolean> {
  const inserted = await tx
    .insert(idempotencyKeys)
    .values(bound)
    .onConflictDoNothing()
    .returning({ key: idempotencyKeys.key });
  return inserted.length === 1;
}
