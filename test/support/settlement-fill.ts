/** Many settlements: copies of one, written as the owner of the tables, without triggers. */
import type pg from 'pg';

export type Fill = {
  readonly orgId: string;
  /** A settlement that was accepted, whose row is copied. */
  readonly templateId: string;
  readonly settlements: number;
  /** SQL for a column of copy number `n`, where it is not that of the template. */
  readonly columns: Readonly<Record<string, string>>;
};

const DIGITS = `translate(lpad(md5($1::text || n), 32, 'a'), '0189', 'wxyz')`;

export async function fillSettlements(owner: pg.Pool, fill: Fill): Promise<void> {
  const client = await owner.connect();
  try {
    await client.query('SET session_replication_role = replica');
    await insertCopies(client, fill);
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

async function insertCopies(client: pg.PoolClient, { orgId, templateId, settlements, columns }: Fill): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT column_name AS name FROM information_schema.columns WHERE table_name = 'settlements'`,
  );
  const values: Record<string, string> = {
    org_id: '$1',
    settlement_id: `'stl_' || ${DIGITS}`,
    // It would not open: it is sealed for the template.
    payee_sealed: 'NULL',
    amount_received_minor: 't.amount_minor',
    created_at: `now() - n * interval '1 second'`,
    ...columns,
  };
  const names = rows.map(({ name }) => name);
  await client.query(
    `INSERT INTO settlements (${names.join(', ')})
     SELECT ${names.map((name) => values[name] ?? `t.${name}`).join(', ')}
     FROM settlements t CROSS JOIN generate_series(1, $2::int) n WHERE t.settlement_id = $3`,
    [orgId, settlements, templateId],
  );
}
