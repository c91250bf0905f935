/**
 * All columns with sealed text, so that a new key of the service reaches each of those that it seals; a test checks
 * that none is missing. Text is replaced page by page, only where it has not changed since it was read, and without
 * waiting for locks. So the service keeps running meanwhile.
 */
import { getTableName, type SQL, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import { consumerContactBinding } from '../../domain/consumer.ts';
import { otpBinding } from '../../domain/otp.ts';
import type { Database, Queryable } from '../client.ts';
import { dataKeyBinding } from '../data-key.ts';
import { consumers } from '../schema/consumer.ts';
import { providerEvents } from '../schema/evidence.ts';
import { idempotencyKeys, idempotencySecrets } from '../schema/idempotency-key.ts';
import { otpChallenges } from '../schema/otp.ts';
import { recipients } from '../schema/recipient.ts';
import { settlements } from '../schema/settlement.ts';
import { verifications } from '../schema/verification.ts';
import { webhookEarlierSecrets, webhooks } from '../schema/webhook.ts';
import { providerEventBinding } from './evidence.ts';
import { secretAnswerBinding } from './idempotency-secret.ts';
import { paymentTokenBinding } from './settlement.ts';
import { webhookSecretBinding } from './webhook.ts';

export type SealedColumn = {
  readonly column: AnyPgColumn;
  /** The columns of the table's primary key; all are text. */
  readonly key: readonly [AnyPgColumn, ...AnyPgColumn[]];
  /** What the sealed text of the row with this key is bound to. */
  readonly bindingOf: (key: readonly string[]) => string;
};

/** With its table: several tables have a column of one name. */
export const sealedColumnName = ({ column }: SealedColumn): string => `${getTableName(column.table)}.${column.name}`;

const first = ([id = '']: readonly string[]): string => id;

export const SEALED_COLUMNS: readonly SealedColumn[] = [
  {
    column: recipients.dataKeySealed,
    key: [recipients.recipientId],
    bindingOf: (key) => dataKeyBinding(first(key)),
  },
  {
    column: settlements.paymentTokenSealed,
    key: [settlements.settlementId],
    bindingOf: (key) => paymentTokenBinding(first(key)),
  },
  {
    column: idempotencySecrets.bodySealed,
    key: [idempotencySecrets.orgId, idempotencySecrets.key],
    bindingOf: ([orgId = '', key = '']) => secretAnswerBinding(orgId, key),
  },
  { column: webhooks.secretSealed, key: [webhooks.webhookId], bindingOf: (key) => webhookSecretBinding(first(key)) },
  {
    column: webhookEarlierSecrets.secretSealed,
    key: [webhookEarlierSecrets.webhookId, webhookEarlierSecrets.secretId],
    bindingOf: (key) => webhookSecretBinding(first(key)),
  },
  {
    column: consumers.contactSealed,
    key: [consumers.consumerId],
    bindingOf: (key) => consumerContactBinding(first(key)),
  },
  {
    column: otpChallenges.contactSealed,
    key: [otpChallenges.challengeId],
    bindingOf: (key) => otpBinding('contact', first(key)),
  },
  {
    column: otpChallenges.codeSealed,
    key: [otpChallenges.challengeId],
    bindingOf: (key) => otpBinding('code', first(key)),
  },
  {
    column: providerEvents.bodySealed,
    key: [providerEvents.provider, providerEvents.eventId],
    bindingOf: ([provider = '', eventId = '']) => providerEventBinding(provider, eventId),
  },
];

/** The columns that recipients' own keys seal. A new key of the service reaches those keys, and not these texts. */
export const DATA_KEY_COLUMNS: readonly AnyPgColumn[] = [
  recipients.personalDataSealed,
  verifications.subjectSealed,
  verifications.verifiedNameSealed,
  settlements.payeeSealed,
  idempotencyKeys.exchangeSealed,
];

/** A row's key, and its sealed text if it has one. */
export type SealedRow = { readonly key: readonly string[]; readonly text: string | null };

/**
 * A page of rows in the order of their keys, also those without text.
 *
 * @param after the last key of the page before; undefined for the first page
 */
export async function listSealed(
  db: Queryable,
  { column, key }: SealedColumn,
  after: readonly string[] | undefined,
  limit: number,
): Promise<SealedRow[]> {
  const beyond =
    after === undefined ? sql`true` : sql`(${joined(key)}) > (${joined(after.map((part) => sql`${part}`))})`;
  const { rows } = await db.execute<SealedRow & Record<string, unknown>>(sql`
    SELECT ARRAY[${joined(key)}] AS key, ${column} AS text FROM ${column.table}
    WHERE ${beyond} ORDER BY ${joined(key)} LIMIT ${limit}`);
  return rows;
}

export type SealedChange = { readonly key: readonly string[]; readonly from: string; readonly to: string };

/**
 * Replaces the texts that have not changed since they were read. A locked row is skipped: waiting for it while other
 * rows are locked here could make another transaction fail.
 *
 * @returns how many texts were replaced
 */
export async function replaceSealed(
  db: Database,
  { column, key }: SealedColumn,
  changes: readonly SealedChange[],
): Promise<number> {
  if (changes.length === 0) return 0;
  const names = key.map((_part, place) => sql.identifier(`key_${place}`));
  const lists = [
    ...key.map((_part, place) => changes.map((change) => change.key[place] ?? '')),
    changes.map(({ from }) => from),
    changes.map(({ to }) => to),
  ];
  const same = (of: string) =>
    sql.join(
      key.map((part, place) => sql`${part} = ${sql.identifier(of)}.${names[place]}`),
      sql` AND `,
    );
  const { rowCount } = await db.execute(sql`
    WITH asked AS (
      SELECT * FROM unnest(${joined(lists.map((list) => sql`${sql.param(list)}::text[]`))})
        AS asked (${joined(names)}, "from", "to")
    ), free AS MATERIALIZED (
      SELECT ${joined(names.map((name) => sql`asked.${name}`))} FROM ${column.table} JOIN asked ON ${same('asked')}
      FOR NO KEY UPDATE OF ${column.table} SKIP LOCKED
    )
    UPDATE ${column.table} SET ${sql.identifier(column.name)} = asked."to"
    FROM asked JOIN free USING (${joined(names)})
    WHERE ${same('asked')} AND ${column} = asked."from"`);
  return rowCount ?? 0;
}

/** How many texts of this column each key has sealed. */
export async function countSealed(
  db: Queryable,
  { column }: SealedColumn,
): Promise<{ readonly keyId: string; readonly count: number }[]> {
  const { rows } = await db.execute<{ keyId: string; count: number }>(sql`
    SELECT split_part(${column}, '.', 1) AS "keyId", count(*)::int AS count FROM ${column.table}
    WHERE ${column} IS NOT NULL GROUP BY 1`);
  return rows;
}

/** Whether this key has sealed a text of this column. */
export async function isSealedBy(db: Queryable, { column }: SealedColumn, keyId: string): Promise<boolean> {
  const { rows } = await db.execute<{ found: boolean }>(sql`
    SELECT EXISTS (SELECT FROM ${column.table} WHERE split_part(${column}, '.', 1) = ${keyId}) AS found`);
  return rows[0]?.found === true;
}

const joined = (parts: readonly (SQL | AnyPgColumn | ReturnType<typeof sql.identifier>)[]): SQL =>
  sql.join(
    parts.map((part) => sql`${part}`),
    sql`, `,
  );
