-- What the database refuses, even if the code is wrong or an operator types SQL.

-- Rows that are permanent.

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of % are permanent', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER audit_entries_permanent BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE audit_entries
  ADD CONSTRAINT audit_entries_chain
    CHECK (sequence > 0 AND octet_length(previous_hash) = 32 AND octet_length(hash) = 32);
CREATE TRIGGER certificates_permanent BEFORE UPDATE OR DELETE OR TRUNCATE ON certificates
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER idempotency_keys_permanent BEFORE UPDATE OR DELETE OR TRUNCATE ON idempotency_keys
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER launch_gate_approvals_permanent BEFORE UPDATE OR DELETE OR TRUNCATE ON launch_gate_approvals
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER launch_gate_evidence_permanent BEFORE DELETE OR TRUNCATE ON launch_gate_evidence
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER postings_permanent BEFORE UPDATE OR DELETE OR TRUNCATE ON postings
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER quotes_permanent BEFORE UPDATE OR DELETE OR TRUNCATE ON quotes
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER settlement_transitions_permanent BEFORE UPDATE OR DELETE OR TRUNCATE ON settlement_transitions
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER wallets_permanent BEFORE UPDATE OR DELETE OR TRUNCATE ON wallets
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- A provider event is permanent, except for the key that its body is sealed with: a rotation seals it again.
CREATE TRIGGER provider_events_permanent
  BEFORE UPDATE OF provider, event_id, type, body_sha256, matched, received_at OR DELETE OR TRUNCATE ON provider_events
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE FUNCTION refuse_all_but_reseal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF to_jsonb(NEW) - 'body_sealed' <> to_jsonb(OLD) - 'body_sealed'
    OR split_part(NEW.body_sealed, '.', 1) = split_part(OLD.body_sealed, '.', 1) THEN
    RAISE EXCEPTION 'rows of % are permanent; their bodies are only sealed anew, by another key', TG_TABLE_NAME
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER provider_events_resealed_only BEFORE UPDATE ON provider_events
  FOR EACH ROW EXECUTE FUNCTION refuse_all_but_reseal();

-- Events and their deliveries are permanent for 90 days, for every role. The service's role has no privilege to delete
-- older ones either: delete_expired_events (0003_upkeep.sql) does.
CREATE FUNCTION refuse_early_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  happened_at timestamptz;
BEGIN
  IF TG_TABLE_NAME = 'events' THEN
    happened_at := OLD.created_at;
  ELSIF TG_TABLE_NAME = 'webhook_deliveries' THEN
    SELECT e.created_at INTO happened_at FROM events e WHERE e.event_id = OLD.event_id;
  ELSE
    SELECT e.created_at INTO happened_at FROM webhook_deliveries d JOIN events e ON e.event_id = d.event_id
    WHERE d.delivery_id = OLD.delivery_id;
  END IF;
  IF happened_at < now() - interval '90 days' THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'rows of % are permanent for 90 days', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER events_permanent BEFORE UPDATE OR TRUNCATE ON events
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER events_retained BEFORE DELETE ON events
  FOR EACH ROW EXECUTE FUNCTION refuse_early_deletion();
CREATE TRIGGER webhook_deliveries_permanent BEFORE TRUNCATE ON webhook_deliveries
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER webhook_deliveries_retained BEFORE DELETE ON webhook_deliveries
  FOR EACH ROW EXECUTE FUNCTION refuse_early_deletion();
CREATE TRIGGER webhook_attempts_permanent BEFORE UPDATE OR TRUNCATE ON webhook_attempts
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER webhook_attempts_retained BEFORE DELETE ON webhook_attempts
  FOR EACH ROW EXECUTE FUNCTION refuse_early_deletion();

-- A settlement begins as accepted and moves along these rules alone.

CREATE TABLE settlement_transition_rules (
  from_status text NOT NULL,
  to_status text NOT NULL,
  PRIMARY KEY (from_status, to_status)
);

INSERT INTO settlement_transition_rules (from_status, to_status) VALUES
  ('accepted', 'rejected'),
  ('accepted', 'compliance_hold'),
  ('accepted', 'awaiting_funds'),
  ('accepted', 'canceled'),
  ('compliance_hold', 'awaiting_funds'),
  ('compliance_hold', 'rejected'),
  ('compliance_hold', 'expired'),
  ('compliance_hold', 'canceled'),
  ('awaiting_funds', 'funded'),
  ('awaiting_funds', 'failed'),
  ('awaiting_funds', 'expired'),
  ('awaiting_funds', 'canceled'),
  ('funded', 'paying_out'),
  ('funded', 'failed'),
  ('paying_out', 'settled'),
  ('paying_out', 'failed'),
  ('paying_out', 'needs_review'),
  ('needs_review', 'settled'),
  ('needs_review', 'failed');

CREATE FUNCTION refuse_settlement_beginning() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.status <> 'accepted' THEN
    RAISE EXCEPTION 'a settlement begins as accepted, not %', NEW.status USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER settlements_beginning BEFORE INSERT ON settlements
  FOR EACH ROW EXECUTE FUNCTION refuse_settlement_beginning();

-- A status changes only by transitions that the same statement adds to the history. They form one chain of rules from
-- the old status to the new one, so the row and its history never differ.
CREATE FUNCTION refuse_settlement_transition() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  reached text := OLD.status;
  added record;
BEGIN
  FOR added IN
    SELECT from_status, to_status FROM settlement_transitions
    WHERE settlement_id = NEW.settlement_id AND sequence > OLD.version ORDER BY sequence
  LOOP
    IF added.from_status IS DISTINCT FROM reached OR NOT EXISTS (
      SELECT 1 FROM settlement_transition_rules WHERE from_status = reached AND to_status = added.to_status
    ) THEN
      RAISE EXCEPTION 'no settlement moves from % to %', reached, added.to_status USING ERRCODE = 'check_violation';
    END IF;
    reached := added.to_status;
  END LOOP;
  IF reached <> NEW.status THEN
    RAISE EXCEPTION 'no settlement moves from % to % without its history', OLD.status, NEW.status
      USING ERRCODE = 'check_violation';
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER settlements_transition AFTER UPDATE OF status ON settlements
  FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION refuse_settlement_transition();

-- Its history obeys the same rules: the first row is accepted, and every other one is a rule.
ALTER TABLE settlement_transitions
  ADD CONSTRAINT settlement_transitions_rule FOREIGN KEY (from_status, to_status)
    REFERENCES settlement_transition_rules (from_status, to_status),
  ADD CONSTRAINT settlement_transitions_first
    CHECK (from_status IS NOT NULL OR (to_status = 'accepted' AND sequence = 1));

ALTER TABLE settlements
  ADD CONSTRAINT settlements_amounts CHECK (
    amount_minor > 0
    AND destination_amount_minor > 0
    AND total_fees_minor = input_fee_minor + platform_fee_minor
    AND total_fees_minor < amount_minor
    AND amount_refunded_minor >= 0
    AND amount_received_minor >= amount_refunded_minor
    AND taken_back_minor BETWEEN 0 AND amount_minor),
  ADD CONSTRAINT settlements_clock CHECK (clock_offset_ms >= 0);

-- What a settlement was accepted for never changes: who is paid, how much, and over which corridor.
CREATE FUNCTION refuse_other_terms() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.org_id, NEW.recipient_id, NEW.payee_sealed, NEW.payee_sha256, NEW.corridor, NEW.payment_method,
      NEW.payout_rail, NEW.amount_minor, NEW.source_currency, NEW.destination_amount_minor, NEW.destination_currency,
      NEW.input_fee_minor, NEW.platform_fee_minor, NEW.total_fees_minor)
    IS DISTINCT FROM
     (OLD.org_id, OLD.recipient_id, OLD.payee_sealed, OLD.payee_sha256, OLD.corridor, OLD.payment_method,
      OLD.payout_rail, OLD.amount_minor, OLD.source_currency, OLD.destination_amount_minor, OLD.destination_currency,
      OLD.input_fee_minor, OLD.platform_fee_minor, OLD.total_fees_minor) THEN
    RAISE EXCEPTION 'the terms of settlement % are permanent', OLD.settlement_id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER settlements_terms_permanent BEFORE UPDATE ON settlements
  FOR EACH ROW EXECUTE FUNCTION refuse_other_terms();

-- The journal balances: the postings that one statement adds to a step sum to zero per currency.
CREATE FUNCTION refuse_unbalanced_postings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM added GROUP BY settlement_id, step, currency HAVING sum(amount_minor) <> 0) THEN
    RAISE EXCEPTION 'a posting set must sum to zero per currency' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER postings_balanced AFTER INSERT ON postings REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_unbalanced_postings();

-- A settlement ends only with a closed journal: nothing is held for it, everything that came in and was not given back
-- is booked, and no evidence is pending. This is checked at commit, once all of its postings are there.
CREATE FUNCTION refuse_open_journal() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  booked bigint;
BEGIN
  IF EXISTS (
    SELECT 1 FROM postings
    WHERE settlement_id = NEW.settlement_id AND account IN ('settlement_funds', 'payout_in_transit')
    GROUP BY account, currency HAVING sum(amount_minor) <> 0
  ) THEN
    RAISE EXCEPTION 'settlement % cannot end while money is held for it', NEW.settlement_id
      USING ERRCODE = 'check_violation';
  END IF;
  SELECT coalesce(sum(amount_minor), 0) INTO booked FROM postings
    WHERE settlement_id = NEW.settlement_id AND account IN ('card_clearing', 'bank_clearing', 'internal_funding');
  IF booked <> (
    SELECT amount_received_minor - amount_refunded_minor FROM settlements WHERE settlement_id = NEW.settlement_id
  ) THEN
    RAISE EXCEPTION 'settlement % cannot end while money that came in is not booked', NEW.settlement_id
      USING ERRCODE = 'check_violation';
  END IF;
  IF EXISTS (SELECT 1 FROM evidence WHERE settlement_id = NEW.settlement_id AND pending) THEN
    RAISE EXCEPTION 'settlement % cannot end while evidence is pending', NEW.settlement_id
      USING ERRCODE = 'check_violation';
  END IF;
  RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER settlements_journal_closed AFTER UPDATE ON settlements
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (
    NEW.status IN ('settled', 'rejected', 'expired', 'failed', 'canceled')
    AND OLD.status IS DISTINCT FROM NEW.status)
  EXECUTE FUNCTION refuse_open_journal();

-- A recipient has its own key and what that seals, or was erased. An erased one stays so, and is inactive.

ALTER TABLE recipients
  ADD CONSTRAINT recipients_erased CHECK (
    num_nulls(data_key_sealed, personal_data_sealed) = CASE WHEN erased_at IS NULL THEN 0 ELSE 2 END),
  ADD CONSTRAINT recipients_erased_inactive CHECK (erased_at IS NULL OR NOT is_active);

ALTER TABLE recipient_erasures
  ADD CONSTRAINT recipient_erasures_two_operators CHECK (confirmed_by IS DISTINCT FROM requested_by);

CREATE FUNCTION refuse_restoring() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'recipient % was erased and stays so', OLD.recipient_id USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER recipients_erased_permanently BEFORE UPDATE ON recipients
  FOR EACH ROW WHEN (OLD.erased_at IS NOT NULL AND NEW.erased_at IS DISTINCT FROM OLD.erased_at)
  EXECUTE FUNCTION refuse_restoring();

-- A bound key has its digests and its answer in clear, or sealed by the key of the recipient that they are about.
ALTER TABLE idempotency_keys
  ADD CONSTRAINT idempotency_keys_exchange CHECK (
    num_nonnulls(recipient_id, exchange_sealed) IN (0, 2)
    AND num_nonnulls(request_hash, field_digests, response_body) = CASE WHEN exchange_sealed IS NULL THEN 3 ELSE 0 END);

-- A verification begins as pending, moves along these rules alone, and has exactly what its state needs.

CREATE TABLE verification_transition_rules (
  from_status text NOT NULL,
  to_status text NOT NULL,
  PRIMARY KEY (from_status, to_status)
);

INSERT INTO verification_transition_rules (from_status, to_status) VALUES
  ('pending', 'in_review'),
  ('pending', 'verified'),
  ('pending', 'rejected'),
  ('pending', 'expired'),
  ('in_review', 'verified'),
  ('in_review', 'rejected'),
  ('in_review', 'expired');

CREATE FUNCTION refuse_verification_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.status <> 'pending' THEN
      RAISE EXCEPTION 'a verification begins as pending, not %', NEW.status USING ERRCODE = 'check_violation';
    END IF;
  ELSIF NEW.status <> OLD.status AND NOT EXISTS (
    SELECT 1 FROM verification_transition_rules WHERE from_status = OLD.status AND to_status = NEW.status
  ) THEN
    RAISE EXCEPTION 'no verification moves from % to %', OLD.status, NEW.status USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER verifications_transition BEFORE INSERT OR UPDATE OF status ON verifications
  FOR EACH ROW EXECUTE FUNCTION refuse_verification_transition();

ALTER TABLE verifications
  ADD CONSTRAINT verifications_reason CHECK (decided_at IS NOT NULL OR rejection_reason IS NULL),
  ADD CONSTRAINT verifications_name CHECK (decided_at IS NOT NULL OR verified_name_sealed IS NULL),
  ADD CONSTRAINT verifications_decided CHECK ((status IN ('verified', 'rejected')) = (decided_at IS NOT NULL)),
  ADD CONSTRAINT verifications_window CHECK (expires_at > created_at);

-- A subscription and a delivery have exactly what their state needs. The outcome of an attempt is written once.

ALTER TABLE webhooks
  ADD CONSTRAINT webhooks_status
    CHECK (status IN ('enabled', 'disabled') AND (status = 'disabled') = (disabled_reason IS NOT NULL)),
  ADD CONSTRAINT webhooks_secret CHECK ((secret_sealed IS NULL) = (deleted_at IS NOT NULL)),
  ADD CONSTRAINT webhooks_event_types CHECK (cardinality(event_types) > 0),
  ADD CONSTRAINT webhooks_lane_key CHECK (lane_key BETWEEN 0 AND 255);

ALTER TABLE webhook_deliveries
  ADD CONSTRAINT webhook_deliveries_status
    CHECK (status IN ('pending', 'succeeded', 'exhausted', 'skipped', 'canceled')),
  ADD CONSTRAINT webhook_deliveries_next CHECK ((status = 'pending') = (next_attempt_at IS NOT NULL)),
  ADD CONSTRAINT webhook_deliveries_lane CHECK (lane_key IS NULL OR status = 'pending'),
  ADD CONSTRAINT webhook_deliveries_claim CHECK ((claimed_by = 0) = (claimed_at IS NULL)),
  ADD CONSTRAINT webhook_deliveries_generation
    CHECK (generation >= 1 AND prior_attempts >= 0 AND attempt_count >= prior_attempts),
  ADD CONSTRAINT webhook_deliveries_redelivered CHECK (cardinality(redelivered_at) <= 5);

ALTER TABLE webhook_replays
  ADD CONSTRAINT webhook_replays_status CHECK (status IN ('running', 'completed', 'canceled')),
  ADD CONSTRAINT webhook_replays_finished CHECK ((status = 'running') = (finished_at IS NULL)),
  ADD CONSTRAINT webhook_replays_counts CHECK (sent >= 0 AND skipped >= 0);

-- Gate evidence is revoked once and otherwise never changed. An operator's name has one spelling, so that nobody counts
-- as two.

ALTER TABLE launch_gate_evidence
  ADD CONSTRAINT launch_gate_evidence_times CHECK (expires_at > recorded_at),
  ADD CONSTRAINT launch_gate_evidence_revocation CHECK ((revoked_at IS NULL) = (revoked_by IS NULL));

ALTER TABLE launch_gate_approvals
  ADD CONSTRAINT launch_gate_approvals_operator CHECK (operator = lower(btrim(operator)) AND operator <> '');

ALTER TABLE operators
  ADD CONSTRAINT operators_name_spelling CHECK (name = lower(btrim(name)) AND name <> ''),
  ADD CONSTRAINT operators_revocation CHECK ((revoked_at IS NULL) = (revoked_by IS NULL));

ALTER TABLE key_reissues
  ADD CONSTRAINT key_reissues_two_operators
    CHECK ((confirmed_by IS NULL) = (key_id IS NULL) AND confirmed_by IS DISTINCT FROM requested_by);

-- Two operators agree about a review, unless one suffices.
ALTER TABLE review_requests
  ADD CONSTRAINT review_requests_two_operators CHECK (confirmed_by IS DISTINCT FROM requested_by);

CREATE FUNCTION refuse_evidence_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.revoked_at IS NOT NULL OR NEW.revoked_at IS NULL
    OR to_jsonb(NEW) - 'revoked_at' - 'revoked_by' <> to_jsonb(OLD) - 'revoked_at' - 'revoked_by' THEN
    RAISE EXCEPTION 'gate evidence is revoked once and otherwise never changed' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER launch_gate_evidence_unchanged BEFORE UPDATE ON launch_gate_evidence
  FOR EACH ROW EXECUTE FUNCTION refuse_evidence_change();

-- A consumer is one proved contact. A code is tried five times at most and used once. A session that has ended stays
-- ended.

ALTER TABLE consumers
  ADD CONSTRAINT consumers_channel CHECK (channel IN ('email', 'phone'));

ALTER TABLE otp_challenges
  ADD CONSTRAINT otp_challenges_channel CHECK (channel IN ('email', 'phone')),
  ADD CONSTRAINT otp_challenges_attempts CHECK (attempts BETWEEN 0 AND 5);

CREATE FUNCTION refuse_otp_reset() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.attempts < OLD.attempts
    OR OLD.consumed_at IS NOT NULL AND NEW.consumed_at IS DISTINCT FROM OLD.consumed_at THEN
    RAISE EXCEPTION 'tries and uses of a code are not taken back' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER otp_challenges_no_reset BEFORE UPDATE ON otp_challenges
  FOR EACH ROW EXECUTE FUNCTION refuse_otp_reset();

CREATE FUNCTION refuse_session_revival() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.ended_at IS NOT NULL OR NEW.expires_at > OLD.expires_at THEN
    RAISE EXCEPTION 'a session that has ended stays so, and none lasts longer than it was given'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER consumer_sessions_no_revival BEFORE UPDATE ON consumer_sessions
  FOR EACH ROW EXECUTE FUNCTION refuse_session_revival();

-- A wallet needs at least one of its signers, and at most all of them.
ALTER TABLE wallets
  ADD CONSTRAINT wallets_threshold CHECK (threshold BETWEEN 1 AND jsonb_array_length(signers));
