/**
 * What must hold once everything is mended and quiet, whatever happened before (notes of the promises:
 * docs/torture.md). Read from the database and from Temporal, past the proxies.
 */
import type { Client } from '@temporalio/client';
import pg from 'pg';
import type { Violation } from './oracle.ts';
import type { Subscriber } from './subscriber.ts';

/** Violations of the whole run belong to no life. */
const WHOLE_RUN = -1;

/** Each statement finds rows that must not be there; the first column says which. */
const FORBIDDEN_ROWS: Readonly<Record<string, string>> = {
  'every posting set is balanced': `SELECT settlement_id || ' ' || step FROM postings GROUP BY settlement_id, step, currency HAVING sum(amount_minor) <> 0`,
  'no evidence is pending on an ended settlement': `SELECT s.settlement_id || ' ' || e.kind FROM evidence e JOIN settlements s USING (settlement_id)
    WHERE e.pending AND s.status IN ('settled', 'rejected', 'expired', 'failed', 'canceled')`,
  'an ended settlement holds no money': `SELECT s.settlement_id || ' ' || p.account || ' ' || sum(p.amount_minor) FROM postings p JOIN settlements s USING (settlement_id)
    WHERE s.status IN ('settled', 'rejected', 'expired', 'failed', 'canceled') AND p.account IN ('settlement_funds', 'payout_in_transit')
    GROUP BY s.settlement_id, p.account HAVING sum(p.amount_minor) <> 0`,
  'money in is booked': `SELECT s.settlement_id || ': evidence ' || e.minor || ', booked ' || coalesce(b.minor, 0) FROM settlements s
    JOIN (SELECT settlement_id, currency, sum(amount_minor) AS minor FROM evidence WHERE kind = 'collection_succeeded' GROUP BY 1, 2) e
      ON e.settlement_id = s.settlement_id AND e.currency = s.source_currency
    LEFT JOIN (SELECT settlement_id, sum(amount_minor) AS minor FROM postings
      WHERE account IN ('card_clearing', 'bank_clearing', 'internal_funding') GROUP BY 1) b ON b.settlement_id = s.settlement_id
    WHERE e.minor <> coalesce(b.minor, 0)`,
  'money in another currency is an exception': `SELECT e.evidence_id FROM evidence e JOIN settlements s USING (settlement_id)
    WHERE e.kind = 'collection_succeeded' AND e.currency <> s.source_currency AND NOT EXISTS
      (SELECT 1 FROM settlement_exceptions x WHERE x.evidence_id = e.evidence_id AND x.type = 'currency_mismatch')`,
  'history has no gap and ends in the status': `SELECT s.settlement_id FROM settlements s JOIN
    (SELECT settlement_id, count(*) AS n, max(sequence) AS last FROM settlement_transitions GROUP BY 1) t USING (settlement_id)
    WHERE t.n <> t.last OR t.last <> s.version OR NOT EXISTS (SELECT 1 FROM settlement_transitions l
      WHERE l.settlement_id = s.settlement_id AND l.sequence = t.last AND l.to_status = s.status)`,
  'time never runs back in a history': `SELECT a.settlement_id || ' ' || a.to_status || ' ' || b.to_status FROM settlement_transitions a
    JOIN settlement_transitions b ON b.settlement_id = a.settlement_id AND b.sequence = a.sequence + 1 WHERE b.at < a.at`,
  'a step is not dated before its evidence': `SELECT t.settlement_id || ' ' || t.to_status FROM settlement_transitions t
    JOIN evidence e ON e.evidence_id = t.evidence_id WHERE t.at < e.received_at`,
  'events have no gap': `SELECT object_id FROM events GROUP BY object_id HAVING count(*) <> max(sequence) OR count(DISTINCT sequence) <> count(*)`,
  'every transition has its event': `SELECT s.settlement_id FROM settlements s WHERE
    (SELECT count(*) FROM settlement_transitions t WHERE t.settlement_id = s.settlement_id) >
    (SELECT count(*) FROM events e WHERE e.object_id = s.settlement_id)`,
  'settled and certified are the same': `SELECT s.settlement_id FROM settlements s LEFT JOIN certificates c USING (settlement_id)
    WHERE (s.status = 'settled') <> (c.cert_id IS NOT NULL) OR s.certificate_id IS DISTINCT FROM c.cert_id`,
  'every settlement of the v2 route has its key': `SELECT s.settlement_id FROM settlements s WHERE NOT EXISTS
    (SELECT 1 FROM idempotency_keys k WHERE k.resource_id = s.settlement_id)`,
  'every event has a delivery to each subscription of its time': `SELECT d.delivery_id FROM webhook_deliveries d
    JOIN events e USING (event_id) WHERE d.org_id <> e.org_id`,
  'the outbox is empty': 'SELECT outbox_id::text FROM outbox',
};

const ROWS_SHOWN = 3;

/** @returns a violation for each promise that does not hold */
export async function checkDatabase(databaseUrl: string): Promise<Violation[]> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const violations: Violation[] = [];
    for (const [rule, statement] of Object.entries(FORBIDDEN_ROWS)) {
      const { rows } = await client.query<string[]>({ text: statement, rowMode: 'array' });
      const shown = rows.slice(0, ROWS_SHOWN).map(([name]) => name);
      if (rows.length > 0)
        violations.push({ life: WHOLE_RUN, rule, detail: `${rows.length} rows: ${shown.join('; ')}` });
    }
    return [...violations, ...(await checkCertificates(client))];
  } finally {
    await client.end();
  }
}

/** Digest and id of every certificate agree with its bytes. */
async function checkCertificates(client: pg.Client): Promise<Violation[]> {
  const { rows } = await client.query<{ cert_id: string }>(
    `SELECT cert_id FROM certificates WHERE sha256 <> sha256(content) OR cert_id <> 'CERT-' || upper(left(encode(sha256(content), 'hex'), 32))`,
  );
  return rows.map(({ cert_id }) => ({ life: WHOLE_RUN, rule: 'a certificate names its bytes', detail: cert_id }));
}

/** One run for each open settlement, none for an ended one. */
export async function checkTemporal(temporal: Client, databaseUrl: string): Promise<Violation[]> {
  const running = new Set<string>();
  const query = 'WorkflowType = "settlement" AND ExecutionStatus = "Running"';
  for await (const { workflowId } of temporal.workflow.list({ query })) running.add(workflowId);
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ id: string }>(
      `SELECT 'settlement:' || settlement_id AS id FROM settlements WHERE status NOT IN ('settled', 'rejected', 'expired', 'failed', 'canceled')`,
    );
    const open = new Set(rows.map(({ id }) => id));
    const lost = [...open].filter((id) => !running.has(id));
    const left = [...running].filter((id) => !open.has(id));
    return [
      ...lost.map((id) => ({ life: WHOLE_RUN, rule: 'an open settlement has a run', detail: id })),
      ...left.map((id) => ({ life: WHOLE_RUN, rule: 'an ended settlement has no run', detail: id })),
    ];
  } finally {
    await client.end();
  }
}

/** Who answers well got every event with a valid signature; of the others, each delivery says why not. */
export async function checkSubscribers(databaseUrl: string, subscribers: readonly Subscriber[]): Promise<Violation[]> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const violations: Violation[] = [];
    for (const { webhookId, manner, events, invalid } of subscribers) {
      const report = (rule: string, detail: string) =>
        violations.push({ life: WHOLE_RUN, rule, detail: `${manner} ${webhookId}: ${detail}` });
      if (invalid > 0) report('every signature is valid', `${invalid} were not`);
      const { rows } = await client.query<{ event_id: string; status: string }>(
        'SELECT event_id, status FROM webhook_deliveries WHERE webhook_id = $1',
        [webhookId],
      );
      if (manner !== 'well' && manner !== 'fails_at_first') continue;
      const missing = rows.filter(({ event_id }) => !events.has(event_id));
      if (missing.length > 0)
        report('a healthy subscriber gets every event', `${missing.length} missing, ${missing[0]?.status}`);
      const unknown = [...events.keys()].filter((id) => !rows.some(({ event_id }) => event_id === id));
      if (unknown.length > 0) report('no event is made up', unknown.join(' '));
    }
    return violations;
  } finally {
    await client.end();
  }
}
