-- The indexes, as db/schema declares them. A unique one is also a guard.

-- Organizations, their keys, and who changes things by command
CREATE UNIQUE INDEX api_keys_key_hash ON api_keys (key_hash);
CREATE INDEX api_keys_org ON api_keys (org_id, created_at);
CREATE INDEX api_keys_created_by ON api_keys (created_by);
CREATE INDEX api_keys_rotated_to ON api_keys (rotated_to);
CREATE INDEX key_reissues_org ON key_reissues (org_id, requested_at);
CREATE UNIQUE INDEX operators_token_hash ON operators (token_hash);
CREATE UNIQUE INDEX operators_name ON operators (name) WHERE revoked_at IS NULL;
CREATE INDEX audit_entries_object ON audit_entries (object_id, at);
CREATE UNIQUE INDEX audit_entries_sequence ON audit_entries (sequence);

-- Requests: what was answered to a key, and how much was asked
CREATE INDEX idempotency_secrets_expiry ON idempotency_secrets (expires_at);

-- Recipients and their verification
CREATE INDEX recipients_org ON recipients (org_id, created_at, recipient_id);
CREATE INDEX recipients_org_filter ON recipients (org_id, is_active, verification_status, created_at, recipient_id);
CREATE INDEX recipients_org_country
  ON recipients (org_id, country, is_active, verification_status, created_at, recipient_id);
CREATE INDEX recipient_erasures_recipient ON recipient_erasures (recipient_id, requested_at);
CREATE UNIQUE INDEX verifications_open ON verifications (recipient_id, verification_type)
  WHERE status IN ('pending', 'in_review');
CREATE INDEX verifications_org ON verifications (org_id, created_at);
CREATE INDEX verifications_recipient ON verifications (recipient_id, created_at, verification_id);
CREATE INDEX verifications_request ON verifications (request_id);

-- Settlements: what was accepted, what happened to it, and what it proves
CREATE INDEX settlements_org ON settlements (org_id, created_at, settlement_id);
CREATE INDEX settlements_org_filter
  ON settlements (org_id, status, corridor, payment_method, created_at, settlement_id);
CREATE INDEX settlements_org_recipient
  ON settlements (org_id, recipient_id, status, corridor, payment_method, created_at, settlement_id);
CREATE INDEX settlements_org_reference
  ON settlements (org_id, reference, status, corridor, payment_method, created_at, settlement_id)
  WHERE reference IS NOT NULL;
CREATE INDEX settlements_recipient_status ON settlements (recipient_id, status);
CREATE INDEX settlements_status ON settlements (status, updated_at);
CREATE INDEX settlements_request ON settlements (request_id);
CREATE UNIQUE INDEX settlement_transitions_once ON settlement_transitions (settlement_id, to_status);
CREATE UNIQUE INDEX settlement_exceptions_once ON settlement_exceptions (settlement_id, type, evidence_id);
CREATE UNIQUE INDEX evidence_event ON evidence (provider, event_id);
CREATE INDEX evidence_settlement ON evidence (settlement_id, position);
CREATE UNIQUE INDEX certificates_settlement ON certificates (settlement_id);

-- Events and their delivery
CREATE UNIQUE INDEX events_object_sequence ON events (object_id, sequence);
CREATE INDEX events_created ON events (created_at);
CREATE INDEX events_org_created ON events (org_id, created_at, event_id);
CREATE INDEX events_org_type ON events (org_id, type, created_at, event_id);
CREATE INDEX webhooks_org ON webhooks (org_id, created_at) WHERE deleted_at IS NULL;
CREATE INDEX webhook_earlier_secrets_expiry ON webhook_earlier_secrets (expires_at);
CREATE UNIQUE INDEX webhook_deliveries_once ON webhook_deliveries (event_id, webhook_id);
CREATE INDEX webhook_deliveries_webhook ON webhook_deliveries (webhook_id, created_at, delivery_id);
CREATE INDEX webhook_deliveries_status ON webhook_deliveries (status, created_at);
CREATE INDEX webhook_deliveries_lane
  ON webhook_deliveries (lane_key, org_id, webhook_id, next_attempt_at, delivery_id) WHERE lane_key IS NOT NULL;
CREATE INDEX webhook_deliveries_retries ON webhook_deliveries (webhook_id, next_attempt_at, delivery_id)
  WHERE status = 'pending' AND lane_key IS NULL;

-- Holds that one replay of a subscription runs at a time, and finds the running ones.
CREATE UNIQUE INDEX webhook_replays_running ON webhook_replays (webhook_id) WHERE status = 'running';

-- What reaches Temporal
CREATE INDEX outbox_first ON outbox (outbox_id) WHERE kind <> 'webhook_subscription';
CREATE INDEX outbox_deliveries ON outbox (outbox_id) WHERE kind = 'webhook_subscription';
CREATE UNIQUE INDEX outbox_subscription ON outbox (object_id) WHERE kind = 'webhook_subscription' AND NOT claimed;

-- Launch gates
CREATE INDEX launch_gate_evidence_scope ON launch_gate_evidence (environment, corridor);

-- Consumers, quotes, bank linking and wallets
CREATE UNIQUE INDEX consumers_contact ON consumers (environment, contact_hash);
CREATE UNIQUE INDEX consumer_sessions_token_hash ON consumer_sessions (token_hash);
CREATE INDEX consumer_sessions_consumer ON consumer_sessions (consumer_id);
CREATE INDEX otp_challenges_contact ON otp_challenges (contact_hash, created_at);
CREATE INDEX otp_challenges_created ON otp_challenges (created_at);
CREATE INDEX quotes_org ON quotes (org_id, created_at);
CREATE INDEX wallets_org ON wallets (org_id, created_at, wallet_id);
