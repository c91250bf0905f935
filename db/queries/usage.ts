/**
 * What an organization used, counted from the records (contract §14). Each count reads the entries of an index between
 * two moments. Deleted subscriptions, and their deliveries, are not counted: nothing shows them. Where the retention
 * has deleted deliveries of a day, there is no count of them.
 */
import { sql } from 'drizzle-orm';
import type { Currency } from '../../domain/money.ts';
import type { SettlementStatus } from '../../domain/settlement/state.ts';
import {
  type CreatedKind,
  type DayOfUsage,
  datesOf,
  type Keeping,
  keepsDeliveries,
  type UsagePeriod,
} from '../../domain/usage.ts';
import type { VerificationStatus } from '../../domain/verification.ts';
import type { DeliveryStatus } from '../../domain/webhook.ts';
import type { Database } from '../client.ts';
import { shownStatus } from './webhook-delivery.ts';

type Counted = {
  readonly kind: 'settlement' | 'verification' | 'delivery' | 'oldest_delivery' | CreatedKind;
  readonly date: string;
  /** A status, and the currency where there is one. */
  readonly name: string | null;
  readonly currency: string | null;
  readonly count: number;
  readonly minor: string | null;
};

/** The days of a period, in their order, also those without any use. From one snapshot. */
export async function readUsage(
  db: Database,
  orgId: string,
  period: UsagePeriod,
  keeping: Omit<Keeping, 'oldest'>,
): Promise<DayOfUsage[]> {
  const day = sql.raw(`to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')`);
  const [from, to] = [period.from.toISOString(), period.to.toISOString()];
  // PostgreSQL adds the day: it cannot read how JavaScript writes the one after 9999-12-31.
  const within = sql`org_id = ${orgId} AND created_at >= ${from}::timestamptz
    AND created_at < ${to}::timestamptz + interval '24 hours'`;
  const created = (kind: CreatedKind, present = sql`true`) => sql`
    SELECT ${kind}::text, ${day}, NULL, NULL, count(*)::int, NULL FROM ${sql.identifier(kind)}
    WHERE ${within} AND ${present} GROUP BY 2`;
  const { rows } = await db.execute<Counted>(sql`
    SELECT 'settlement' AS kind, ${day} AS date, status AS name, source_currency AS currency, count(*)::int AS count,
      (sum(amount_minor) FILTER (WHERE status = 'settled'))::text AS minor
    FROM settlements WHERE ${within} GROUP BY 2, 3, 4
    UNION ALL SELECT 'verification', ${day}, status, NULL, count(*)::int, NULL
    FROM verifications WHERE ${within} GROUP BY 2, 3
    UNION ALL SELECT 'delivery', ${day}, ${shownStatus}, NULL, count(*)::int, NULL
    FROM webhook_deliveries WHERE ${within}
      AND webhook_id = ANY (ARRAY(SELECT webhook_id FROM webhooks WHERE org_id = ${orgId} AND deleted_at IS NULL))
    GROUP BY 2, 3
    -- Deliveries are deleted in this order, but none that is pending.
    UNION ALL SELECT 'oldest_delivery', ${day}, NULL, NULL, 1, NULL
    FROM (SELECT created_at FROM webhook_deliveries WHERE status <> 'pending' ORDER BY delivery_id LIMIT 1) oldest
    UNION ALL ${created('recipients')} UNION ALL ${created('wallets')} UNION ALL ${created('api_keys')}
    UNION ALL ${created('webhooks', sql`deleted_at IS NULL`)}`);
  const oldest = rows.find(({ kind }) => kind === 'oldest_delivery')?.date;
  return datesOf(period).map((date) => {
    const counted = dayOf(
      date,
      rows.filter((row) => row.date === date),
    );
    return keepsDeliveries(date, { ...keeping, oldest }) ? counted : { ...counted, deliveries: null };
  });
}

function dayOf(date: string, rows: readonly Counted[]): DayOfUsage {
  const settlements: Partial<Record<SettlementStatus, number>> = {};
  const volumeMinor: Partial<Record<Currency, bigint>> = {};
  const verifications: Partial<Record<VerificationStatus, number>> = {};
  const deliveries: Partial<Record<DeliveryStatus, number>> = {};
  const created: Partial<Record<CreatedKind, number>> = {};
  for (const { kind, name, currency, count, minor } of rows) {
    if (kind === 'settlement') {
      const status = name as SettlementStatus;
      settlements[status] = (settlements[status] ?? 0) + count;
      if (minor !== null) volumeMinor[currency as Currency] = BigInt(minor);
    } else if (kind === 'verification') verifications[name as VerificationStatus] = count;
    else if (kind === 'delivery') deliveries[name as DeliveryStatus] = count;
    else if (kind !== 'oldest_delivery') created[kind] = count;
  }
  return { date, settlements, volumeMinor, verifications, deliveries, created };
}
