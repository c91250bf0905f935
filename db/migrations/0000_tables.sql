-- The tables, as db/schema declares them. What the database refuses is in 0001_guards.sql.

-- Organizations, their keys, and who changes things by command

-- Tenants. A consumer is one too.
CREATE TABLE organizations (
  org_id text PRIMARY KEY,
  kind text NOT NULL,
  name text NOT NULL,
  country text NOT NULL,
  contact_email text NOT NULL,
  environment text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  suspended_at timestamptz(3),
  tier text NOT NULL DEFAULT 'standard',
  limits jsonb NOT NULL DEFAULT '{}'
);

-- How many objects of a kind an organization has created. They are never deleted.
CREATE TABLE quota_uses (
  org_id text NOT NULL,
  kind text NOT NULL,
  used integer NOT NULL,
  CONSTRAINT quota_uses_org_id_kind_pk PRIMARY KEY (org_id, kind),
  CONSTRAINT quota_uses_org_id_organizations_org_id_fk
    FOREIGN KEY (org_id) REFERENCES organizations (org_id)
);

-- Only a peppered HMAC of a key.
CREATE TABLE api_keys (
  key_id text PRIMARY KEY,
  org_id text NOT NULL,
  name text NOT NULL,
  scope text NOT NULL,
  status text NOT NULL,
  environment text NOT NULL,
  prefix text NOT NULL,
  key_hash bytea NOT NULL,
  pepper_id text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  last_used_at timestamptz(3),
  last_used_from text,
  allowed_cidrs text[],
  expires_at timestamptz(3),
  revoked_at timestamptz(3),
  rotated_to text,
  created_by text,
  event_sequence integer NOT NULL DEFAULT 0,
  event_at timestamptz(3),
  CONSTRAINT api_keys_org_id_organizations_org_id_fk
    FOREIGN KEY (org_id) REFERENCES organizations (org_id)
);

-- Requests for a new key of an organization that has lost its own.
CREATE TABLE key_reissues (
  reissue_id text PRIMARY KEY,
  org_id text NOT NULL,
  requested_by text NOT NULL,
  requested_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  confirmed_by text,
  key_id text,
  CONSTRAINT key_reissues_org_id_organizations_org_id_fk
    FOREIGN KEY (org_id) REFERENCES organizations (org_id),
  CONSTRAINT key_reissues_key_id_api_keys_key_id_fk
    FOREIGN KEY (key_id) REFERENCES api_keys (key_id)
);

-- Fingerprints that do not reveal the keys.
CREATE TABLE service_keys (
  list text NOT NULL,
  key_id text NOT NULL,
  fingerprint bytea NOT NULL,
  first_used_at timestamptz(3) NOT NULL,
  CONSTRAINT service_keys_list_key_id_pk PRIMARY KEY (list, key_id)
);

-- Only a peppered HMAC of an operator's token.
CREATE TABLE operators (
  operator_id text PRIMARY KEY,
  name text NOT NULL,
  token_hash bytea NOT NULL,
  pepper_id text NOT NULL,
  added_by text NOT NULL,
  added_at timestamptz(3) NOT NULL,
  revoked_by text,
  revoked_at timestamptz(3)
);

-- What operators did, and why. org_id is null for the whole service.
CREATE TABLE audit_entries (
  audit_id text PRIMARY KEY,
  org_id text,
  object_id text NOT NULL,
  action text NOT NULL,
  operator text NOT NULL,
  note text NOT NULL,
  at timestamptz(3) NOT NULL,
  sequence bigint NOT NULL,
  previous_hash bytea NOT NULL,
  hash bytea NOT NULL,
  CONSTRAINT audit_entries_org_id_organizations_org_id_fk
    FOREIGN KEY (org_id) REFERENCES organizations (org_id)
);

-- Requests: what was answered to a key, and how much was asked

-- A key is bound to its first request and answer permanently. exchange_sealed has the digests and the answer where they
-- are about a recipient.
CREATE TABLE idempotency_keys (
  org_id text NOT NULL,
  key text NOT NULL,
  request_hash bytea,
  field_digests jsonb,
  resource_id text NOT NULL,
  response_status integer NOT NULL,
  response_body bytea,
  recipient_id text,
  exchange_sealed text,
  created_at timestamptz(3) NOT NULL,
  CONSTRAINT idempotency_keys_org_id_key_pk PRIMARY KEY (org_id, key),
  CONSTRAINT idempotency_keys_org_id_organizations_org_id_fk
    FOREIGN KEY (org_id) REFERENCES organizations (org_id)
);

-- Answers that showed a secret, until they expire.
CREATE TABLE idempotency_secrets (
  org_id text NOT NULL,
  key text NOT NULL,
  body_sealed text NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  CONSTRAINT idempotency_secrets_org_id_key_pk PRIMARY KEY (org_id, key),
  CONSTRAINT idempotency_secrets_org_id_organizations_org_id_fk
    FOREIGN KEY (org_id) REFERENCES organizations (org_id)
);

-- Unlogged: counting is not worth a write to the log, and a crash empties it and nothing else.
CREATE UNLOGGED TABLE rate_limits (
  caller text PRIMARY KEY,
  window_start timestamptz(3) NOT NULL,
  used integer NOT NULL
);

-- Recipients and their verification

-- Personal data is sealed by the recipient's own key. Both are null once it is erased.
CREATE TABLE recipients (
  recipient_id text PRIMARY KEY,
  org_id text NOT NULL,
  kind text NOT NULL,
  entity_type text NOT NULL,
  country text NOT NULL,
  data_key_sealed text,
  personal_data_sealed text,
  metadata jsonb NOT NULL,
  is_active boolean NOT NULL,
  verification_status text NOT NULL,
  erased_at timestamptz(3),
  event_sequence integer NOT NULL DEFAULT 0,
  event_at timestamptz(3),
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL,
  CONSTRAINT recipients_org_id_organizations_org_id_fk
    FOREIGN KEY (org_id) REFERENCES organizations (org_id)
);

-- One row for each key of a recipient's metadata, so that a list that is filtered by it reads an index.
CREATE TABLE recipient_metadata (
  org_id text NOT NULL,
  key text NOT NULL,
  value text NOT NULL,
  country text NOT NULL,
  is_active boolean NOT NULL,
  verification_status text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  recipient_id text NOT NULL,
  CONSTRAINT recipient_metadata_pk PRIMARY KEY (
    org_id, key, value, country, is_active, verification_status, created_at, recipient_id),
  CONSTRAINT recipient_metadata_recipient_id_recipients_recipient_id_fk
    FOREIGN KEY (recipient_id) REFERENCES recipients (recipient_id)
);

CREATE TABLE recipient_erasures (
  erasure_id text PRIMARY KEY,
  recipient_id text NOT NULL,
  requested_by text NOT NULL,
  requested_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  confirmed_by text,
  CONSTRAINT recipient_erasures_recipient_id_recipients_recipient_id_fk
    FOREIGN KEY (recipient_id) REFERENCES recipients (recipient_id)
);

CREATE TABLE verifications (
  verification_id text PRIMARY KEY,
  org_id text NOT NULL,
  recipient_id text NOT NULL,
  verification_type text NOT NULL,
  document_type text,
  document_country text,
  status text NOT NULL,
  provider text NOT NULL,
  applicant_id text,
  level_name text,
  subject_sealed text NOT NULL,
  subject_digest bytea NOT NULL,
  verified_name_sealed text,
  rejection_reason text,
  request_id text NOT NULL,
  event_sequence integer NOT NULL DEFAULT 0,
  event_at timestamptz(3),
  created_at timestamptz(3) NOT NULL,
  decided_at timestamptz(3),
  expires_at timestamptz(3) NOT NULL,
  CONSTRAINT verifications_org_id_organizations_org_id_fk
    FOREIGN KEY (org_id) REFERENCES organizations (org_id),
  CONSTRAINT verifications_recipient_id_recipients_recipient_id_fk
    FOREIGN KEY (recipient_id) REFERENCES recipients (recipient_id)
);

-- Settlements: what was accepted, what happened to it, and what it proves

-- Amounts in minor units, the rate in millionths. payee_sealed is the recipient as it was at acceptance.
CREATE TABLE settlements (
  settlement_id text PRIMARY KEY,
  org_id text NOT NULL,
  origin text NOT NULL,
  status text NOT NULL,
  version integer NOT NULL,
  event_sequence integer NOT NULL DEFAULT 0,
  corridor text NOT NULL,
  recipient_id text NOT NULL,
  payee_sealed text NOT NULL,
  payee_sha256 text NOT NULL,
  payment_method text NOT NULL,
  payout_rail text NOT NULL,
  amount_minor bigint NOT NULL,
  source_currency text NOT NULL,
  destination_amount_minor bigint NOT NULL,
  destination_currency text NOT NULL,
  rate_millionths bigint NOT NULL,
  input_fee_minor bigint NOT NULL,
  platform_fee_minor bigint NOT NULL,
  total_fees_minor bigint NOT NULL,
  amount_received_minor bigint NOT NULL,
  amount_refunded_minor bigint NOT NULL,
  taken_back_minor bigint NOT NULL,
  purpose text,
  reference text,
  metadata jsonb NOT NULL,
  environment text NOT NULL,
  failure jsonb,
  payment_token_sealed text,
  expires_at timestamptz(3),
  clock_offset_ms bigint NOT NULL,
  certificate_id text,
  request_id text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL,
  CONSTRAINT settlements_org_id_organizations_org_id_fk
    FOREIGN KEY (org_id) REFERENCES organizations (org_id),
  CONSTRAINT settlements_recipient_id_recipients_recipient_id_fk
    FOREIGN KEY (recipient_id) REFERENCES recipients (recipient_id)
);

-- One row for each state that was entered.
CREATE TABLE settlement_transitions (
  settlement_id text NOT NULL,
  sequence integer NOT NULL,
  from_status text,
  to_status text NOT NULL,
  at timestamptz(3) NOT NULL,
  reason text,
  evidence_id text,
  CONSTRAINT settlement_transitions_settlement_id_sequence_pk PRIMARY KEY (settlement_id, sequence),
  CONSTRAINT settlement_transitions_settlement_id_settlements_settlement_id_fk
    FOREIGN KEY (settlement_id) REFERENCES settlements (settlement_id)
);

-- One row for each key of a settlement's metadata, so that a list that is filtered by it reads an index.
CREATE TABLE settlement_metadata (
  org_id text NOT NULL,
  key text NOT NULL,
  value text NOT NULL,
  status text NOT NULL,
  corridor text NOT NULL,
  payment_method text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  settlement_id text NOT NULL,
  CONSTRAINT settlement_metadata_pk PRIMARY KEY (
    org_id, key, value, status, corridor, payment_method, created_at, settlement_id),
  CONSTRAINT settlement_metadata_settlement_id_settlements_settlement_id_fk
    FOREIGN KEY (settlement_id) REFERENCES settlements (settlement_id)
);

-- Evidence that needs attention and changed no state.
CREATE TABLE settlement_exceptions (
  exception_id text PRIMARY KEY,
  settlement_id text NOT NULL,
  type text NOT NULL,
  at timestamptz(3) NOT NULL,
  evidence_id text,
  amount_minor bigint,
  currency text,
  CONSTRAINT settlement_exceptions_settlement_id_settlements_settlement_id_fk
    FOREIGN KEY (settlement_id) REFERENCES settlements (settlement_id)
);

-- Every verified event of a provider, once. The body is sealed.
CREATE TABLE provider_events (
  provider text NOT NULL,
  event_id text NOT NULL,
  type text NOT NULL,
  body_sha256 bytea NOT NULL,
  body_sealed text NOT NULL,
  matched boolean NOT NULL,
  received_at timestamptz(3) NOT NULL,
  CONSTRAINT provider_events_provider_event_id_pk PRIMARY KEY (provider, event_id)
);

-- What a provider event says about a settlement's money. position is the order of commits.
CREATE TABLE evidence (
  evidence_id text PRIMARY KEY,
  position bigserial NOT NULL,
  settlement_id text NOT NULL,
  provider text NOT NULL,
  event_id text NOT NULL,
  kind text NOT NULL,
  amount_minor bigint,
  currency text,
  failure jsonb,
  sha256 bytea NOT NULL,
  pending boolean NOT NULL,
  reversed_minor bigint NOT NULL,
  received_at timestamptz(3) NOT NULL,
  CONSTRAINT evidence_settlement_id_settlements_settlement_id_fk
    FOREIGN KEY (settlement_id) REFERENCES settlements (settlement_id)
);

-- The journal.
CREATE TABLE postings (
  settlement_id text NOT NULL,
  step text NOT NULL,
  line integer NOT NULL,
  account text NOT NULL,
  currency text NOT NULL,
  amount_minor bigint NOT NULL,
  at timestamptz(3) NOT NULL,
  CONSTRAINT postings_settlement_id_step_line_pk PRIMARY KEY (settlement_id, step, line),
  CONSTRAINT postings_settlement_id_settlements_settlement_id_fk
    FOREIGN KEY (settlement_id) REFERENCES settlements (settlement_id)
);

-- The bytes that were signed and are served.
CREATE TABLE certificates (
  cert_id text PRIMARY KEY,
  org_id text NOT NULL,
  settlement_id text NOT NULL,
  content bytea NOT NULL,
  sha256 bytea NOT NULL,
  signature text NOT NULL,
  issued_at timestamptz(3) NOT NULL,
  CONSTRAINT certificates_org_id_organizations_org_id_fk
    FOREIGN KEY (org_id) REFERENCES organizations (org_id),
  CONSTRAINT certificates_settlement_id_settlements_settlement_id_fk
    FOREIGN KEY (settlement_id) REFERENCES settlements (settlement_id)
);

-- Events and their delivery

-- Outbound events, as the bytes that subscribers are sent.
CREATE TABLE events (
  event_id text PRIMARY KEY,
  org_id text NOT NULL,
  type text NOT NULL,
  object_type text NOT NULL,
  object_id text NOT NULL,
  sequence integer NOT NULL,
  body bytea NOT NULL,
  created_at timestamptz(3) NOT NULL,
  CONSTRAINT events_org_id_organizations_org_id_fk
    FOREIGN KEY (org_id) REFERENCES organizations (org_id)
);

-- Subscriptions. endings counts how often its pending deliveries were ended; lane_key says which lane sends to it.
CREATE TABLE webhooks (
  webhook_id text PRIMARY KEY,
  org_id text NOT NULL,
  url text NOT NULL,
  event_types text[] NOT NULL,
  description text,
  status text NOT NULL,
  disabled_reason text,
  failing_since timestamptz(3),
  endings integer NOT NULL DEFAULT 0,
  lane_key smallint NOT NULL,
  retries_at timestamptz(3),
  secret_sealed text,
  event_sequence integer NOT NULL DEFAULT 0,
  event_at timestamptz(3),
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL,
  deleted_at timestamptz(3),
  CONSTRAINT webhooks_org_id_organizations_org_id_fk
    FOREIGN KEY (org_id) REFERENCES organizations (org_id)
);

-- The secrets before the current one.
CREATE TABLE webhook_earlier_secrets (
  webhook_id text NOT NULL,
  secret_id text NOT NULL,
  secret_sealed text NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  CONSTRAINT webhook_earlier_secrets_webhook_id_secret_id_pk PRIMARY KEY (webhook_id, secret_id),
  CONSTRAINT webhook_earlier_secrets_webhook_id_webhooks_webhook_id_fk
    FOREIGN KEY (webhook_id) REFERENCES webhooks (webhook_id)
);

-- A later activity that sends has a higher number.
CREATE SEQUENCE webhook_claimants;

-- One row for each event and subscription. With fewer endings than its subscription, it has ended. With a lane_key, a
-- lane sends it now; a pending one without waits for its retry. Free space in each page keeps claims cheap.
CREATE TABLE webhook_deliveries (
  delivery_id text PRIMARY KEY,
  org_id text NOT NULL,
  webhook_id text NOT NULL,
  event_id text NOT NULL,
  event_type text NOT NULL,
  status text NOT NULL,
  generation integer NOT NULL,
  prior_attempts integer NOT NULL,
  attempt_count integer NOT NULL DEFAULT 0,
  next_attempt_at timestamptz(3),
  lane_key smallint,
  endings integer NOT NULL,
  claimed_by bigint NOT NULL DEFAULT 0,
  claimed_at timestamptz(3),
  redelivery_requested boolean NOT NULL DEFAULT false,
  redelivered_at timestamptz(3)[],
  request_id text NOT NULL,
  traceparent text,
  created_at timestamptz(3) NOT NULL,
  CONSTRAINT webhook_deliveries_org_id_organizations_org_id_fk
    FOREIGN KEY (org_id) REFERENCES organizations (org_id),
  CONSTRAINT webhook_deliveries_webhook_id_webhooks_webhook_id_fk
    FOREIGN KEY (webhook_id) REFERENCES webhooks (webhook_id),
  CONSTRAINT webhook_deliveries_event_id_events_event_id_fk
    FOREIGN KEY (event_id) REFERENCES events (event_id)
) WITH (fillfactor = 80);

-- Deliveries that are sent again, in steps. reached_at and reached_id are the last delivery that was looked at.
CREATE TABLE webhook_replays (
  replay_id text PRIMARY KEY,
  org_id text NOT NULL,
  webhook_id text NOT NULL,
  since timestamptz(3) NOT NULL,
  until timestamptz(3),
  statuses text[] NOT NULL,
  event_types text[],
  status text NOT NULL,
  sent integer NOT NULL DEFAULT 0,
  skipped integer NOT NULL DEFAULT 0,
  reached_at timestamptz(3) NOT NULL,
  reached_id text NOT NULL DEFAULT '',
  request_id text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  finished_at timestamptz(3),
  CONSTRAINT webhook_replays_org_id_organizations_org_id_fk
    FOREIGN KEY (org_id) REFERENCES organizations (org_id),
  CONSTRAINT webhook_replays_webhook_id_webhooks_webhook_id_fk
    FOREIGN KEY (webhook_id) REFERENCES webhooks (webhook_id)
);

-- What was sent, and what became of it.
CREATE TABLE webhook_attempts (
  delivery_id text NOT NULL,
  number integer NOT NULL,
  at timestamptz(3) NOT NULL,
  outcome text NOT NULL,
  response_status integer,
  response_bytes integer,
  response_sha256 bytea,
  duration_ms integer NOT NULL,
  error text,
  CONSTRAINT webhook_attempts_delivery_id_number_pk PRIMARY KEY (delivery_id, number),
  CONSTRAINT webhook_attempts_delivery_id_webhook_deliveries_delivery_id_fk
    FOREIGN KEY (delivery_id) REFERENCES webhook_deliveries (delivery_id)
);

-- What reaches Temporal

-- Messages to Temporal, deleted once they are dispatched.
CREATE TABLE outbox (
  outbox_id bigserial PRIMARY KEY,
  kind text NOT NULL,
  object_id text NOT NULL,
  signal text,
  context jsonb NOT NULL,
  request_id text NOT NULL,
  traceparent text,
  attempts integer NOT NULL DEFAULT 0,
  claimed boolean NOT NULL DEFAULT false,
  due_at timestamptz NOT NULL DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now(),
  last_error text
);

-- How far each sweep for lost runs is.
CREATE TABLE sweeps (
  kind text PRIMARY KEY,
  after_id text NOT NULL DEFAULT '',
  restarted bigint NOT NULL DEFAULT 0,
  finished_at timestamptz NOT NULL DEFAULT now()
);

-- Launch gates

-- For one environment and one corridor each.
CREATE TABLE launch_gate_evidence (
  evidence_id text PRIMARY KEY,
  gate text NOT NULL,
  environment text NOT NULL,
  corridor text NOT NULL,
  reference text NOT NULL,
  sha256 bytea NOT NULL,
  recorded_by text NOT NULL,
  recorded_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  revoked_by text,
  revoked_at timestamptz(3)
);

CREATE TABLE launch_gate_approvals (
  evidence_id text NOT NULL,
  operator text NOT NULL,
  approved_at timestamptz(3) NOT NULL,
  CONSTRAINT launch_gate_approvals_evidence_id_operator_pk PRIMARY KEY (evidence_id, operator),
  CONSTRAINT launch_gate_approvals_evidence_id_launch_gate_evidence_evidence_id_fk
    FOREIGN KEY (evidence_id) REFERENCES launch_gate_evidence (evidence_id)
);

-- Consumers, quotes, bank linking and wallets

-- By the contact that they proved, which is sealed.
CREATE TABLE consumers (
  consumer_id text PRIMARY KEY,
  channel text NOT NULL,
  contact_hash bytea NOT NULL,
  pepper_id text NOT NULL,
  contact_sealed text NOT NULL,
  environment text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  CONSTRAINT consumers_consumer_id_organizations_org_id_fk
    FOREIGN KEY (consumer_id) REFERENCES organizations (org_id)
);

-- Only a peppered HMAC of the token.
CREATE TABLE consumer_sessions (
  session_id text PRIMARY KEY,
  consumer_id text NOT NULL,
  token_hash bytea NOT NULL,
  created_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  ended_at timestamptz(3),
  CONSTRAINT consumer_sessions_consumer_id_consumers_consumer_id_fk
    FOREIGN KEY (consumer_id) REFERENCES consumers (consumer_id)
);

-- One-time codes. A row is deleted when it neither proves nor limits anything.
CREATE TABLE otp_challenges (
  challenge_id text PRIMARY KEY,
  channel text NOT NULL,
  contact_hash bytea NOT NULL,
  contact_sealed text NOT NULL,
  code_hash bytea NOT NULL,
  code_sealed text,
  attempts integer NOT NULL,
  created_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  consumed_at timestamptz(3)
);

-- What operators ask for about a payout whose outcome is unknown. It is carried out once it is agreed.
CREATE TABLE review_requests (
  settlement_id text PRIMARY KEY,
  outcome text NOT NULL,
  requested_by text NOT NULL,
  requested_at timestamptz(3) NOT NULL,
  confirmed_by text,
  agreed_at timestamptz(3),
  CONSTRAINT review_requests_settlement_id_settlements_settlement_id_fk
    FOREIGN KEY (settlement_id) REFERENCES settlements (settlement_id)
);

-- The inputs of a consumer's estimate.
CREATE TABLE quotes (
  quote_id text PRIMARY KEY,
  org_id text NOT NULL,
  corridor text NOT NULL,
  amount_minor bigint NOT NULL,
  source_currency text NOT NULL,
  payment_method text NOT NULL,
  payout_rail text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  CONSTRAINT quotes_org_id_organizations_org_id_fk
    FOREIGN KEY (org_id) REFERENCES organizations (org_id)
);

-- Public tokens; each is exchanged once.
CREATE TABLE banklink_tokens (
  token_hash bytea PRIMARY KEY,
  org_id text NOT NULL,
  user_reference text,
  created_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  exchanged_at timestamptz(3),
  CONSTRAINT banklink_tokens_org_id_organizations_org_id_fk
    FOREIGN KEY (org_id) REFERENCES organizations (org_id)
);

-- Simulated multisig wallets.
CREATE TABLE wallets (
  wallet_id text PRIMARY KEY,
  org_id text NOT NULL,
  name text NOT NULL,
  network text NOT NULL,
  address text NOT NULL,
  signers jsonb NOT NULL,
  threshold integer NOT NULL,
  created_at timestamptz(3) NOT NULL,
  CONSTRAINT wallets_org_id_organizations_org_id_fk
    FOREIGN KEY (org_id) REFERENCES organizations (org_id)
);
