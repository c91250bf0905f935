/**
 * A consumer's transfers are its settlements (contract §12). A transfer's id is computed from the settlement's, so
 * there is no second record that could differ. It is a UUIDv7: its time is the time of acceptance, and its other digits
 * are a digest.
 */
import { createHash } from 'node:crypto';
import { and, eq } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import type { SettlementWithHistory } from '../../domain/resource/settlement.ts';
import type { Settlement } from '../../domain/settlement/state.ts';
import type { Queryable } from '../client.ts';
import { settlements } from '../schema/settlement.ts';
import { getSettlementWithHistory } from './settlement-history.ts';

const TIME_DIGITS = 12;
/** An id can contain a later time, but the database cannot read it as a date. */
const LATEST_MS = Date.UTC(9999, 11, 31);
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
/** The two leading bits that RFC 9562 sets. */
const VARIANT = 0b10 << 2;

/** The id of a settlement as a transfer. */
export function transferIdOf({ settlementId, createdAt }: Pick<Settlement, 'settlementId' | 'createdAt'>): string {
  const time = createdAt.getTime().toString(16).padStart(TIME_DIGITS, '0');
  const digest = createHash('sha256').update(`transfer/v1\0${settlementId}`).digest('hex');
  const variant = (VARIANT | (Number.parseInt(digest.slice(3, 4), 16) & 0b11)).toString(16);
  const digits = `${time}7${digest.slice(0, 3)}${variant}${digest.slice(4, 19)}`;
  return [digits.slice(0, 8), digits.slice(8, 12), digits.slice(12, 16), digits.slice(16, 20), digits.slice(20)].join(
    '-',
  );
}

/** @throws DomainError `not_found`, for another consumer's transfer as well */
export async function getTransfer(
  deps: Parameters<typeof getSettlementWithHistory>[0],
  orgId: string,
  transferId: string,
): Promise<SettlementWithHistory> {
  const settlementId = UUID_V7.test(transferId) ? await findSettlementId(deps.db, orgId, transferId) : undefined;
  if (settlementId === undefined) throw new DomainError('not_found');
  return await getSettlementWithHistory(deps, orgId, settlementId);
}

/** Looks among the few settlements that one consumer created in one millisecond. */
async function findSettlementId(db: Queryable, orgId: string, transferId: string): Promise<string | undefined> {
  const createdAtMs = Number.parseInt(transferId.replace('-', '').slice(0, TIME_DIGITS), 16);
  if (createdAtMs > LATEST_MS) return undefined;
  const candidates = await db
    .select({ settlementId: settlements.settlementId, createdAt: settlements.createdAt })
    .from(settlements)
    .where(and(eq(settlements.orgId, orgId), eq(settlements.createdAt, new Date(createdAtMs))));
  return candidates.find((candidate) => transferIdOf(candidate) === transferId)?.settlementId;
}
