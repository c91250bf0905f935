/**
 * What must hold once everything runs again and is quiet, whatever happened before (docs/torture.md lists it). It is
 * read from the database and from Temporal directly, and from the API.
 */
import type { Client } from '@temporalio/client';
import { verifyCertificate } from '../../clients/typescript/certificate.ts';
import { onDatabase, queryOnce } from '../support/connection.ts';
import { stretched } from '../support/patience.ts';
import { askUntil } from '../support/wait.ts';
import type { HttpClient } from './client.ts';
import type { PlayedScenario } from './oracle.ts';
import { receivesAll, type Subscriber } from './subscriber.ts';
import { authorize } from './tenant.ts';
import type { Violation } from './violation.ts';

const ENDED = `('settled', 'rejected', 'expired', 'failed', 'canceled')`;

/**
 * `arrived`: what came in and was not taken back, by what the providers said, in their order. Nobody takes back more
 * than has arrived by then; who names no amount takes all of it. `places`: what a settlement must show as received and
 * as due.
 */
const ARRIVED = `WITH RECURSIVE said AS (
    SELECT e.settlement_id, e.kind = 'collection_succeeded' AS is_payment, coalesce(e.amount_minor, 0) AS minor,
      row_number() OVER (PARTITION BY e.settlement_id ORDER BY e.position) AS number
    FROM evidence e JOIN settlements s USING (settlement_id)
    WHERE e.kind IN ('collection_succeeded', 'collection_returned', 'dispute_opened')
      AND coalesce(e.currency, s.source_currency) = s.source_currency
  ), walked AS (
    SELECT settlement_id, 0::bigint AS number, 0::bigint AS minor FROM settlements
    UNION ALL
    SELECT settlement_id, said.number, CASE WHEN is_payment THEN walked.minor + said.minor
      ELSE greatest(0, walked.minor - coalesce(nullif(said.minor, 0), walked.minor)) END
    FROM walked JOIN said USING (settlement_id) WHERE said.number = walked.number + 1
  ), arrived AS (
    SELECT DISTINCT ON (settlement_id) settlement_id, minor FROM walked ORDER BY settlement_id, number DESC
  ), places AS (
    SELECT s.*, a.minor AS arrived_minor, amount_refunded_minor
      + CASE WHEN status IN ('paying_out', 'needs_review', 'settled') THEN amount_minor ELSE 0 END AS gone_minor
    FROM settlements s JOIN arrived a USING (settlement_id)
  )`;

/** The balance of some accounts of a settlement. */
const balance = (...accounts: readonly string[]): string =>
  `coalesce((SELECT sum(p.amount_minor) FROM postings p WHERE p.settlement_id = s.settlement_id
    AND p.currency = s.source_currency AND p.account IN (${accounts.map((account) => `'${account}'`).join(', ')})), 0)`;

/** Each statement finds what must not be there. Its first column says which row. */
const FORBIDDEN: Readonly<Record<string, string>> = {
  'every set of postings is balanced': `SELECT settlement_id || ' ' || step FROM postings
    GROUP BY settlement_id, step, currency HAVING sum(amount_minor) <> 0`,
  'no evidence is pending when a settlement has ended': `SELECT s.settlement_id || ' ' || e.kind
    FROM evidence e JOIN settlements s USING (settlement_id) WHERE e.pending AND s.status IN ${ENDED}`,
  'a settlement that has ended holds no money': `SELECT s.settlement_id FROM settlements s WHERE s.status IN ${ENDED}
    AND (${balance('settlement_funds')} <> 0 OR ${balance('payout_in_transit')} <> 0)`,
  'all money that came in is booked and shown': `${ARRIVED} SELECT s.settlement_id || ': arrived ' || arrived_minor
      || ', gone ' || gone_minor || ', shown ' || s.amount_received_minor || ', booked '
      || ${balance('card_clearing', 'bank_clearing', 'internal_funding')}
    FROM places s WHERE s.amount_received_minor <> greatest(arrived_minor, gone_minor)
      OR ${balance('card_clearing', 'bank_clearing', 'internal_funding')}
        <> s.amount_received_minor - s.amount_refunded_minor`,
  'all money that is not paid out is due back or given back': `${ARRIVED} SELECT s.settlement_id || ' '
      || s.status || ': arrived ' || arrived_minor || ', gone ' || gone_minor || ', due ' || -${balance('refund_due')}
    FROM places s WHERE s.status IN ${ENDED} AND -${balance('refund_due')} <> greatest(0, arrived_minor - gone_minor)`,
  'no amount of late evidence is money that did not come': `SELECT x.settlement_id || ' ' || x.amount_minor
    FROM settlement_exceptions x LEFT JOIN evidence e USING (evidence_id) WHERE x.type = 'late_evidence'
      AND x.amount_minor IS NOT NULL AND (e.kind, e.amount_minor) IS DISTINCT FROM ('collection_succeeded', x.amount_minor)`,
  'no money is paid out after the payer took it back': `SELECT s.settlement_id FROM settlements s
    JOIN settlement_transitions t ON t.settlement_id = s.settlement_id AND t.to_status = 'paying_out'
    JOIN evidence e ON e.settlement_id = s.settlement_id AND e.reversed_minor > 0 AND e.received_at < t.at`,
  // What only makes up for money that was taken back before is an exception, and amount_received does not grow.
  'each payment is reported once': `SELECT s.settlement_id FROM settlements s WHERE
    (SELECT count(*) FROM evidence e WHERE e.settlement_id = s.settlement_id AND e.kind = 'collection_succeeded'
      AND e.currency = s.source_currency AND e.amount_minor > 0 AND (EXISTS (SELECT 1 FROM postings p
        WHERE p.settlement_id = s.settlement_id AND p.step IN ('collection:' || e.evidence_id, 'surplus:' || e.evidence_id))
      OR NOT EXISTS (SELECT 1 FROM settlement_exceptions x WHERE x.evidence_id = e.evidence_id
        AND x.type IN ('overpaid', 'late_evidence') AND x.amount_minor = e.amount_minor)))
    <> (SELECT count(*) FROM events e WHERE e.object_id = s.settlement_id AND e.type = 'settlement.funds_received')`,
  'each refund is booked and reported once': `SELECT s.settlement_id FROM settlements s WHERE s.amount_refunded_minor <>
      coalesce((SELECT sum(p.amount_minor) FROM postings p WHERE p.settlement_id = s.settlement_id
        AND p.account = 'refund_due' AND p.step LIKE 'refund:%'), 0)
    OR (SELECT count(DISTINCT p.step) FROM postings p WHERE p.settlement_id = s.settlement_id
        AND p.step LIKE 'refund:%')
      <> (SELECT count(*) FROM events e WHERE e.object_id = s.settlement_id AND e.type = 'settlement.refunded')`,
  'money in another currency is an exception': `SELECT e.evidence_id
    FROM evidence e JOIN settlements s USING (settlement_id)
    WHERE e.kind = 'collection_succeeded' AND e.currency <> s.source_currency AND NOT EXISTS
      (SELECT 1 FROM settlement_exceptions x WHERE x.evidence_id = e.evidence_id AND x.type = 'currency_mismatch')`,
  'a settlement is paid out at most once': `SELECT settlement_id FROM evidence WHERE kind = 'payout_confirmed'
    GROUP BY settlement_id HAVING count(*) > 1`,
  'the history has no gap and ends in the status': `SELECT s.settlement_id FROM settlements s JOIN
    (SELECT settlement_id, count(*) AS n, max(sequence) AS last FROM settlement_transitions GROUP BY 1) t
      USING (settlement_id)
    WHERE t.n <> t.last OR t.last <> s.version OR NOT EXISTS (SELECT 1 FROM settlement_transitions l
      WHERE l.settlement_id = s.settlement_id AND l.sequence = t.last AND l.to_status = s.status)`,
  'time never runs back in a history': `SELECT a.settlement_id || ' ' || a.to_status || ' ' || b.to_status
    FROM settlement_transitions a JOIN settlement_transitions b
      ON b.settlement_id = a.settlement_id AND b.sequence = a.sequence + 1 WHERE b.at < a.at`,
  'time never runs back in the events of an object': `SELECT a.object_id || ' ' || a.type || ' ' || b.type
    FROM events a JOIN events b ON b.object_id = a.object_id AND b.sequence = a.sequence + 1
    WHERE b.created_at < a.created_at`,
  'no step is dated before its evidence': `SELECT t.settlement_id || ' ' || t.to_status FROM settlement_transitions t
    JOIN evidence e ON e.evidence_id = t.evidence_id WHERE t.at < e.received_at`,
  'the events of an object have no gap': `SELECT object_id FROM events
    GROUP BY object_id HAVING count(*) <> max(sequence) OR count(DISTINCT sequence) <> count(*)`,
  'every transition has one event': `SELECT t.settlement_id || ' ' || t.to_status FROM settlement_transitions t
    WHERE 1 <> (SELECT count(*) FROM events e WHERE e.object_id = t.settlement_id
      AND e.type = 'settlement.' || t.to_status)`,
  'settled means certified, once': `SELECT s.settlement_id FROM settlements s LEFT JOIN certificates c USING (settlement_id)
    WHERE (s.status = 'settled') <> (c.cert_id IS NOT NULL) OR s.certificate_id IS DISTINCT FROM c.cert_id`,
  'every settlement has its idempotency key': `SELECT s.settlement_id FROM settlements s WHERE NOT EXISTS
    (SELECT 1 FROM idempotency_keys k WHERE k.resource_id = s.settlement_id)`,
  "no delivery is another tenant's": `SELECT d.delivery_id FROM webhook_deliveries d
    JOIN events e USING (event_id) JOIN webhooks w USING (webhook_id) WHERE d.org_id <> e.org_id OR d.org_id <> w.org_id`,
  'no row of the outbox waits': `SELECT outbox_id::text FROM outbox WHERE due_at < now() - interval '20 seconds'`,
};

export const DATABASE_RULES: readonly string[] = Object.keys(FORBIDDEN);

const ROWS_SHOWN = 3;
/** A delivery that failed twice is retried after five minutes. Everything else is quiet long before. */
const QUIET_TIMEOUT_MS = stretched(420_000);
const QUIET_POLL_MS = 500;
const REST_TIMEOUT_MS = stretched(60_000);
const REST_POLL_MS = 2_000;
/** A sweep starts lost runs again within a minute. */
const RUNS_TIMEOUT_MS = stretched(90_000);
const RUNS_POLL_MS = 500;

/** @returns a violation for each promise that does not hold */
const checkDatabase = (databaseUrl: string): Promise<Violation[]> =>
  onDatabase(databaseUrl, async (client) => {
    const violations: Violation[] = [];
    for (const [rule, text] of Object.entries(FORBIDDEN)) {
      const { rows } = await client.query<string[]>({ text, rowMode: 'array' });
      const shown = rows.slice(0, ROWS_SHOWN).map(([name]) => name);
      if (rows.length > 0) violations.push({ rule, detail: `${rows.length} rows: ${shown.join('; ')}` });
    }
    return violations;
  });

/** One run for each open settlement, and none for an ended one. Temporal lists its runs with a delay. */
const checkTemporal = (temporal: Client, databaseUrl: string): Promise<Violation[]> =>
  askUntil(() => compareRuns(temporal, databaseUrl), hasNone, { timeoutMs: RUNS_TIMEOUT_MS, everyMs: RUNS_POLL_MS });

const hasNone = ({ length }: readonly Violation[]): boolean => length === 0;

async function compareRuns(temporal: Client, databaseUrl: string): Promise<Violation[]> {
  const running = new Set<string>();
  const query = 'WorkflowType = "settlement" AND ExecutionStatus = "Running"';
  for await (const { workflowId } of temporal.workflow.list({ query })) running.add(workflowId);
  const rows = await queryOnce<{ id: string }>(
    databaseUrl,
    `SELECT 'settlement:' || settlement_id AS id FROM settlements WHERE status NOT IN ${ENDED}`,
  );
  const open = new Set(rows.map(({ id }) => id));
  return [
    ...[...open].filter((id) => !running.has(id)).map((id) => ({ rule: 'an open settlement has a run', detail: id })),
    ...[...running].filter((id) => !open.has(id)).map((id) => ({ rule: 'an ended settlement has no run', detail: id })),
  ];
}

/**
 * Every event since the subscription was created has a delivery to it, and a delivery succeeded only if the subscriber
 * accepted the event. A healthy subscriber received every event.
 */
const checkSubscribers = (databaseUrl: string, subscribers: readonly Subscriber[]): Promise<Violation[]> =>
  onDatabase(databaseUrl, async (client) => {
    const violations: Violation[] = [];
    for (const { tenant, webhookId, behavior, events, invalid } of subscribers) {
      const requireNone = (rule: string, found: readonly string[]) => {
        if (found.length > 0)
          violations.push({ rule, detail: `${behavior} ${webhookId}: ${found.length}, ${found[0]} for example` });
      };
      const { rows } = await client.query<{ event_id: string; status: string | null }>(
        `SELECT e.event_id, d.status FROM events e
          LEFT JOIN webhook_deliveries d ON d.event_id = e.event_id AND d.webhook_id = $2
          WHERE e.org_id = $1 AND (e.object_type <> 'webhook' OR e.object_id = $2)
            AND e.created_at >= (SELECT created_at FROM webhooks WHERE webhook_id = $2)`,
        [tenant.orgId, webhookId],
      );
      const idsOf = (wrong: (row: { readonly event_id: string; readonly status: string | null }) => boolean) =>
        rows.filter(wrong).map(({ event_id, status }) => `${event_id} ${status}`);
      requireNone('every signature is valid', Array<string>(invalid).fill('a request'));
      requireNone(
        'every event has a delivery',
        idsOf(({ status }) => status === null),
      );
      requireNone(
        'a delivery succeeds only when the subscriber accepts',
        idsOf(({ event_id, status }) => status === 'succeeded' && !events.has(event_id)),
      );
      requireNone(
        'a healthy subscriber receives every event',
        idsOf(({ status }) => receivesAll(behavior) && status !== 'succeeded'),
      );
      const known = new Set(rows.map(({ event_id }) => event_id));
      requireNone(
        'no event is invented',
        [...events.keys()].filter((id) => !known.has(id)),
      );
    }
    return violations;
  });

/**
 * Waits until nothing is due, then checks everything that is written. A workflow may do something later still, so what
 * is violated is checked once more, for a while.
 */
export const checkAtRest = (
  databaseUrl: string,
  temporal: Client,
  subscribers: readonly Subscriber[],
): Promise<Violation[]> =>
  askUntil(
    async () => [
      ...(await settleDown(databaseUrl, subscribers)),
      ...(await checkDatabase(databaseUrl)),
      ...(await checkTemporal(temporal, databaseUrl)),
      ...(await checkSubscribers(databaseUrl, subscribers)),
    ],
    hasNone,
    { timeoutMs: REST_TIMEOUT_MS, everyMs: REST_POLL_MS },
  );

const NOTHING = { messages: 0, deliveries: 0 };

/** Waits until nothing is due any more. What is still due after seven minutes is a violation. */
async function settleDown(databaseUrl: string, subscribers: readonly Subscriber[]): Promise<Violation[]> {
  const webhookIds = subscribers.filter(({ behavior }) => receivesAll(behavior)).map(({ webhookId }) => webhookId);
  const due = `SELECT (SELECT count(*)::int FROM outbox) AS messages,
    (SELECT count(*)::int FROM webhook_deliveries WHERE status = 'pending' AND webhook_id = ANY ($1)) AS deliveries`;
  return await onDatabase(databaseUrl, async (client) => {
    const { messages, deliveries } = await askUntil(
      async () => (await client.query<{ messages: number; deliveries: number }>(due, [webhookIds])).rows[0] ?? NOTHING,
      (left) => left.messages === 0 && left.deliveries === 0,
      { timeoutMs: QUIET_TIMEOUT_MS, everyMs: QUIET_POLL_MS },
    );
    const detail = `${messages} rows of the outbox and ${deliveries} deliveries are left`;
    return messages + deliveries === 0 ? [] : [{ rule: 'everything comes to rest', detail }];
  });
}

/** What the API still says about the scenarios when everything is quiet, and that each certificate verifies offline. */
export async function checkScenarios(http: HttpClient, played: readonly PlayedScenario[]): Promise<Violation[]> {
  const { body: jwks } = await http.untilAnswered({ path: '/.well-known/jwks.json' });
  const violations: Violation[] = [];
  for (const { index, tenant, last, checkAgain } of played) {
    violations.push(...(await checkAgain()));
    const certId: string | null = last?.certificate_id ?? null;
    if (certId === null) continue;
    const path = `/v1/caribbean/certificate/${certId}`;
    const { bytes, headers } = await http.untilAnswered({ path, headers: authorize(tenant) });
    const signature = headers.get('x-certificate-signature') ?? '';
    const { checks } = verifyCertificate({ bytes, signature }, jwks, { certId });
    for (const [check, passed] of Object.entries(checks))
      if (!passed)
        violations.push({
          scenario: index,
          rule: 'a certificate verifies offline',
          detail: `the check ${check} of ${certId} failed`,
        });
  }
  return violations;
}
