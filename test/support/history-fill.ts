/**
 * The rest of what a service with many settlements holds: other organizations with theirs, and what lies around each
 * settlement. Written by few statements, as the owner of the tables and without triggers; its sealed texts cannot be
 * opened.
 */
import type pg from 'pg';

export type History = {
  /** The organization that has a third of all settlements; they are there already. */
  readonly orgId: string;
  /** Its subscription, to which its deliveries went. */
  readonly webhookId: string;
  /** How many others there are. */
  readonly organizations: number;
};

/** Settlements to which one statement adds rows. */
const BATCH = 100_000;

/** The beginning of an id of this time, which decides the month of its row; also where id_at is not there yet. */
const idAt = (at: string): string =>
  `overlay(lpad(to_hex((extract(epoch FROM ${at}) * 1000)::bigint), 12, '0') PLACING '-' FROM 9 FOR 0)`;
/** An event's, and its delivery's. */
const ID = `${idAt('updated_at')} || '-' || settlement_id`;
const DIGEST = `sha256(settlement_id::bytea)`;
/** It names a key, and proves nothing. */
const SIGNATURE = `${Buffer.from('{"alg":"EdDSA","kid":"old"}').toString('base64url')}..none`;

/** By organization: `n` is its number. */
const OF_ORGANIZATION = [
  `INSERT INTO organizations (org_id, kind, name, country, contact_email, environment, created_at)
    SELECT 'org-' || n, 'partner', 'Acme', 'JM', 'dev@acme.example', 'local sandbox', now() - n * interval '1 minute'
    FROM generate_series(1, $1::int) n`,
  `INSERT INTO api_keys (key_id, org_id, name, scope, status, environment, prefix, key_hash, pepper_id, created_at)
    SELECT 'key-' || n, 'org-' || n, 'first', 'full', 'active', 'local sandbox', 'sk_sandbox_' || n,
      sha256(n::text::bytea), 'old', now() - n * interval '1 minute' FROM generate_series(1, $1::int) n`,
  `INSERT INTO key_reissues (reissue_id, org_id, requested_by, requested_at, expires_at)
    SELECT 'reissue-' || n, 'org-' || n, 'ana', now(), now() FROM generate_series(1, $1::int) n`,
  `INSERT INTO webhooks (webhook_id, org_id, url, event_types, status, lane_key, secret_sealed, created_at, updated_at)
    SELECT 'webhook-' || n, 'org-' || n, 'http://127.0.0.1:9/', '{*}', 'enabled', n % 256, 'sealed', now(), now()
    FROM generate_series(1, $1::int) n`,
  `INSERT INTO webhook_earlier_secrets (webhook_id, secret_id, secret_sealed, expires_at)
    SELECT 'webhook-' || n, 'first', 'sealed', now() + interval '1 day' FROM generate_series(1, $1::int) n`,
  `INSERT INTO webhook_replays (replay_id, org_id, webhook_id, since, statuses, status, reached_at, request_id,
      created_at, finished_at)
    SELECT 'replay-' || n, 'org-' || n, 'webhook-' || n, now(), '{skipped}', 'completed', now(), 'fill', now(), now()
    FROM generate_series(1, $1::int) n`,
  `INSERT INTO consumers (consumer_id, channel, contact_hash, pepper_id, contact_sealed, environment, created_at)
    SELECT 'org-' || n, 'email', sha256(n::text::bytea), 'old', 'sealed', 'local sandbox', now()
    FROM generate_series(1, $1::int) n`,
  `INSERT INTO consumer_sessions (session_id, consumer_id, token_hash, created_at, expires_at)
    SELECT 'session-' || n, 'org-' || n, sha256(n::text::bytea), now(), now() + interval '1 day'
    FROM generate_series(1, $1::int) n`,
  `INSERT INTO otp_challenges (challenge_id, channel, contact_hash, contact_sealed, code_hash, attempts, created_at,
      expires_at)
    SELECT 'challenge-' || n, 'email', sha256(n::text::bytea), 'sealed', ''::bytea, 0, now(), now()
    FROM generate_series(1, $1::int) n`,
  `INSERT INTO quotes (quote_id, org_id, corridor, amount_minor, source_currency, payment_method, payout_rail,
      created_at, expires_at)
    SELECT ${idAt('now()')} || '-' || n, 'org-' || n, 'US-JM', 25000, 'USD', 'card', 'bank_transfer', now(), now()
    FROM generate_series(1, $1::int) n`,
  `INSERT INTO banklink_tokens (token_hash, org_id, created_at, expires_at)
    SELECT sha256(n::text::bytea), 'org-' || n, now(), now() + interval '1 day' FROM generate_series(1, $1::int) n`,
  `INSERT INTO wallets (wallet_id, org_id, name, network, address, signers, threshold, created_at)
    SELECT 'wallet-' || n, 'org-' || n, 'Treasury', 'base', '0x', '[{}]', 1, now() FROM generate_series(1, $1::int) n`,
  `INSERT INTO idempotency_secrets (org_id, key, body_sealed, expires_at)
    SELECT 'org-' || n, 'first', 'sealed', now() + interval '1 day' FROM generate_series(1, $1::int) n`,
  `INSERT INTO rate_limits (caller, window_start, used)
    SELECT 'org-' || n, now(), 1 FROM generate_series(1, $1::int) n`,
  `INSERT INTO quota_uses (org_id, kind, used)
    SELECT 'org-' || n, 'recipients', 1 FROM generate_series(1, $1::int) n`,
];

/** Two copies of each of the large organization's settlements in a range of ids, for the others. They have ended. */
const copyText = (columns: readonly string[]): string => {
  const values: Record<string, string> = {
    settlement_id: `copy || substr(s.settlement_id, 4)`,
    org_id: `'org-' || 1 + s.n % $2::int`,
    recipient_id: `'recipient-' || 1 + s.n % ($2::int * 5)`,
    status: `CASE WHEN s.status = 'awaiting_funds' THEN 'settled' ELSE s.status END`,
    request_id: `s.settlement_id || copy`,
  };
  return `INSERT INTO settlements (${columns.join(', ')})
    SELECT ${columns.map((name) => values[name] ?? `s.${name}`).join(', ')}
    FROM (SELECT *, row_number() OVER () AS n FROM settlements
      WHERE org_id = $1 AND settlement_id > $3 AND settlement_id <= $4) s, unnest('{st1,st2}'::text[]) copy`;
};

/** By settlement, which is `s`. */
const OF_SETTLEMENT = [
  `INSERT INTO recipients (recipient_id, org_id, kind, entity_type, country, data_key_sealed, personal_data_sealed,
      metadata, is_active, verification_status, erased_at, created_at, updated_at)
    SELECT DISTINCT ON (recipient_id) recipient_id, org_id, 'contractor', 'individual', 'JM', NULL, NULL, '{}', false,
      'unverified', created_at, created_at, created_at FROM s ON CONFLICT DO NOTHING`,
  `INSERT INTO recipient_erasures (erasure_id, recipient_id, requested_by, requested_at, expires_at)
    SELECT DISTINCT ON (recipient_id) 'erasure-' || recipient_id, recipient_id, 'ana', created_at, created_at FROM s
    ON CONFLICT DO NOTHING`,
  `INSERT INTO review_requests (settlement_id, outcome, requested_by, requested_at)
    SELECT settlement_id, 'paid', 'ana', updated_at FROM s WHERE settlement_id ~ '[a-d]$'`,
  `INSERT INTO recipient_metadata (org_id, key, value, country, is_active, verification_status, created_at, recipient_id)
    SELECT DISTINCT ON (recipient_id) org_id, 'staff', recipient_id, 'JM', false, 'unverified', created_at, recipient_id
    FROM s ON CONFLICT DO NOTHING`,
  `INSERT INTO verifications (verification_id, org_id, recipient_id, verification_type, status, provider,
      subject_sealed, subject_digest, verified_name_sealed, request_id, created_at, decided_at, expires_at)
    SELECT DISTINCT ON (recipient_id) 'verification-' || recipient_id, org_id, recipient_id, 'identity', 'verified',
      'manual', 'sealed', ''::bytea, 'sealed', request_id, created_at, created_at, created_at + interval '1 day'
    FROM s ON CONFLICT DO NOTHING`,
  `INSERT INTO settlement_metadata (org_id, key, value, status, corridor, payment_method, created_at, settlement_id)
    SELECT org_id, entry.key, entry.value, status, corridor, payment_method, created_at, settlement_id
    FROM s CROSS JOIN jsonb_each_text(metadata) AS entry ON CONFLICT DO NOTHING`,
  `INSERT INTO settlement_transitions (settlement_id, sequence, to_status, at)
    SELECT settlement_id, 1, 'accepted', created_at FROM s ON CONFLICT DO NOTHING`,
  `INSERT INTO settlement_transitions (settlement_id, sequence, from_status, to_status, at, reason)
    SELECT settlement_id, 2, 'accepted', 'awaiting_funds', created_at, 'compliance_passed' FROM s`,
  `INSERT INTO settlement_exceptions (exception_id, settlement_id, type, at)
    SELECT 'exception-' || settlement_id, settlement_id, 'late_evidence', updated_at FROM s
    WHERE settlement_id LIKE '%a'`,
  `INSERT INTO idempotency_keys (org_id, key, request_hash, field_digests, resource_id, response_status, response_body, created_at)
    SELECT org_id, settlement_id, ${DIGEST}, '{}', settlement_id, 202, ''::bytea, created_at FROM s`,
  `INSERT INTO provider_events (provider, event_id, type, body_sha256, body_sealed, matched, received_at)
    SELECT 'cardproc', 'evt-' || settlement_id, 'payment_intent.succeeded', ${DIGEST}, 'sealed', true, updated_at FROM s`,
  `INSERT INTO evidence (evidence_id, settlement_id, provider, event_id, kind, amount_minor, currency, sha256, pending,
      reversed_minor, received_at)
    SELECT 'evidence-' || settlement_id, settlement_id, 'cardproc', 'evt-' || settlement_id, 'collection_succeeded',
      amount_minor, source_currency, ${DIGEST}, false, 0, updated_at FROM s`,
  `INSERT INTO postings (settlement_id, step, line, account, currency, amount_minor, at)
    SELECT settlement_id, 'collection', line, 'payer_funds', 'USD', CASE line WHEN 1 THEN 25000 ELSE -25000 END, updated_at
    FROM s, generate_series(1, 2) line`,
  `INSERT INTO certificates (cert_id, org_id, settlement_id, content, sha256, signature, issued_at)
    SELECT 'certificate-' || settlement_id, org_id, settlement_id, ${DIGEST}, ${DIGEST}, '${SIGNATURE}', updated_at FROM s`,
  `INSERT INTO events (event_id, org_id, type, object_type, object_id, sequence, body, created_at)
    SELECT ${ID}, org_id, 'settlement.settled', 'settlement', settlement_id, 1, ${DIGEST}, updated_at
    FROM s`,
  // One of 32 waits for its retry.
  `INSERT INTO webhook_deliveries (delivery_id, org_id, webhook_id, event_id, event_type, status, generation,
      prior_attempts, attempt_count, next_attempt_at, endings, request_id, created_at)
    SELECT ${ID}, org_id, webhook_id, ${ID}, 'settlement.settled',
      CASE WHEN settlement_id LIKE '%c' THEN 'pending' ELSE 'succeeded' END, 1, 0, 1,
      CASE WHEN settlement_id LIKE '%c' THEN now() + interval '1 day' END, 0, request_id, updated_at FROM s`,
  `INSERT INTO webhook_attempts (delivery_id, number, at, outcome, response_status, duration_ms)
    SELECT ${ID}, 1, updated_at, 'succeeded', 200, 5 FROM s`,
  `INSERT INTO audit_entries (audit_id, org_id, object_id, action, operator, note, at, sequence, previous_hash, hash)
    SELECT 'audit-' || settlement_id, org_id, settlement_id, 'redispatch', 'ana', 'fill', updated_at,
      row_number() OVER () + (SELECT count(*) FROM audit_entries), ${DIGEST}, ${DIGEST} FROM s WHERE settlement_id ~ '[a-d]$'`,
];

/** Around the settlements of the large organization, which are there, and of the others, which are copied from them. */
export async function fillHistory(owner: pg.Pool, { orgId, webhookId, organizations }: History): Promise<void> {
  const client = await owner.connect();
  try {
    await client.query('SET session_replication_role = replica; SET statement_timeout = 0');
    for (const insert of OF_ORGANIZATION) await client.query(insert, [organizations]);
    const { rows: columns } = await client.query<{ name: string }>(
      `SELECT column_name AS name FROM information_schema.columns WHERE table_name = 'settlements'`,
    );
    const copy = copyText(columns.map(({ name }) => name));
    for (const range of await rangesOf(client, `org_id = '${orgId}'`, BATCH / 2))
      await client.query(copy, [orgId, organizations, ...range]);
    for (const [after, last] of await rangesOf(client, 'true', BATCH)) {
      await client.query(
        `CREATE TEMP TABLE s AS SELECT *,
           CASE org_id WHEN '${orgId}' THEN '${webhookId}' ELSE 'webhook-' || substr(org_id, 5) END AS webhook_id
         FROM settlements WHERE settlement_id > '${after}' AND settlement_id <= '${last}'
           AND NOT EXISTS (SELECT FROM events WHERE object_id = settlement_id)`,
      );
      for (const insert of OF_SETTLEMENT) await client.query(insert);
      await client.query('DROP TABLE s');
    }
  } finally {
    client.release(true);
  }
}

/** Ranges of the ids of these settlements, each with so many: after the first id, up to the last one. */
async function rangesOf(client: pg.PoolClient, where: string, size: number): Promise<[after: string, last: string][]> {
  const { rows } = await client.query<{ last: string }>(
    `SELECT max(settlement_id) AS last FROM (
       SELECT settlement_id, (row_number() OVER (ORDER BY settlement_id) - 1) / ${size} AS batch
       FROM settlements WHERE ${where}) numbered GROUP BY batch ORDER BY batch`,
  );
  return rows.map(({ last }, at) => [rows[at - 1]?.last ?? '', last]);
}
