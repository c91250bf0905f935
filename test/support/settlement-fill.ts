/** Many settlements: copies of one, written as the owner of the tables, without triggers. */
import type pg from 'pg';
import type { KeyOwner } from '../../db/data-key.ts';
import { newId, settlementIdOf } from '../../db/id.ts';
import { openPayee, sealPayee } from '../../db/payee.ts';
import type { Sealer } from '../../db/seal.ts';
import { dataKeyOf } from './settlement.ts';

export type Fill = {
  readonly orgId: string;
  /** A settlement that was accepted, whose row is copied. */
  readonly templateId: string;
  readonly settlements: number;
  /** SQL for a column of copy number `n`, where it is not that of the template. */
  readonly columns: Readonly<Record<string, string>>;
};

/** Copies that one statement writes. */
const BATCH = 10_000;

/** @param sealer opens the key of the template's recipient, which seals the payee for each copy */
export async function fillSettlements(owner: pg.Pool, sealer: Sealer, fill: Fill): Promise<void> {
  const client = await owner.connect();
  try {
    await client.query('SET session_replication_role = replica; SET statement_timeout = 0');
    await insertCopies(client, sealer, fill);
    await client.query(
      `INSERT INTO settlement_metadata
         (org_id, key, value, status, corridor, payment_method, created_at, settlement_id)
       SELECT org_id, entry.key, entry.value, status, corridor, payment_method, created_at, settlement_id
       FROM settlements CROSS JOIN jsonb_each_text(metadata) AS entry WHERE org_id = $1 AND settlement_id <> $2 ORDER BY 1, 2, 3, 4, 5, 6, 7`,
      [fill.orgId, fill.templateId],
    );
    await client.query(
      `INSERT INTO settlement_transitions (settlement_id, sequence, to_status, at)
       SELECT settlement_id, 1, 'accepted', created_at FROM settlements
       WHERE org_id = $1 AND settlement_id <> $2`,
      [fill.orgId, fill.templateId],
    );
  } finally {
    client.release(true);
  }
}

async function insertCopies(client: pg.PoolClient, sealer: Sealer, fill: Fill): Promise<void> {
  const { orgId, templateId, settlements } = fill;
  const insert = await insertStatement(client, fill.columns);
  const { payeeSealed: templateSealed, ...owner } = await templateOf(client, templateId);
  const dataKey = dataKeyOf(sealer, owner);
  const payee = openPayee(dataKey, { settlementId: templateId, payeeSealed: templateSealed });
  for (let first = 1; first <= settlements; first += BATCH) {
    const copies = Array.from({ length: Math.min(BATCH, settlements - first + 1) }, (_, index) => {
      const id = settlementIdOf(orgId, newId());
      const { payeeSealed, payeeSha256 } = sealPayee(dataKey, id, payee);
      return { n: first + index, id, sealed: payeeSealed, sha256: payeeSha256 };
    });
    await client.query(insert, [orgId, templateId, JSON.stringify(copies)]);
  }
}

async function templateOf(client: pg.PoolClient, settlementId: string) {
  const { rows } = await client.query<KeyOwner & { readonly payeeSealed: string }>(
    `SELECT payee_sealed AS "payeeSealed", recipient_id AS "recipientId", data_key_sealed AS "dataKeySealed"
     FROM settlements JOIN recipients USING (recipient_id) WHERE settlement_id = $1`,
    [settlementId],
  );
  if (!rows[0]) throw new Error(`no settlement ${settlementId}`);
  return rows[0];
}

async function insertStatement(client: pg.PoolClient, columns: Fill['columns']): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT column_name AS name FROM information_schema.columns WHERE table_name = 'settlements'`,
  );
  const values: Record<string, string> = {
    org_id: '$1',
    settlement_id: 'copy.id',
    payee_sealed: 'copy.sealed',
    payee_sha256: 'copy.sha256',
    amount_received_minor: 't.amount_minor',
    created_at: `now() - n * interval '1 second'`,
    ...columns,
  };
  const names = rows.map(({ name }) => name);
  return `INSERT INTO settlements (${names.join(', ')})
    SELECT ${names.map((name) => values[name] ?? `t.${name}`).join(', ')}
    FROM settlements t
    CROSS JOIN jsonb_to_recordset($3::jsonb) AS copy (n integer, id text, sealed text, sha256 text)
    WHERE t.settlement_id = $2`;
}
