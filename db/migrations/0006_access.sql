-- Indexes for statements that read more than they needed, and none that no statement reads. `migrate` builds each one
-- before this migration, without a lock that writers wait for.
CREATE INDEX IF NOT EXISTS settlements_recipient ON settlements (org_id, recipient_id, created_at, settlement_id);
CREATE INDEX IF NOT EXISTS settlements_open ON settlements (settlement_id)
  WHERE status IN ('accepted', 'compliance_hold', 'awaiting_funds', 'funded', 'paying_out', 'needs_review');
CREATE INDEX IF NOT EXISTS api_keys_prefix ON api_keys (prefix);
CREATE INDEX IF NOT EXISTS api_keys_expiry ON api_keys (expires_at) WHERE status = 'active' AND scope = 'full';
CREATE INDEX IF NOT EXISTS evidence_pending ON evidence (evidence_id) WHERE pending;
CREATE INDEX IF NOT EXISTS idempotency_keys_recipient ON idempotency_keys (recipient_id) WHERE recipient_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS webhooks_deleted ON webhooks (org_id, webhook_id) WHERE deleted_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS webhooks_failing ON webhooks (webhook_id) WHERE failing_since IS NOT NULL;
CREATE INDEX IF NOT EXISTS outbox_first_due ON outbox (due_at, outbox_id) WHERE kind <> 'webhook_subscription';
CREATE INDEX IF NOT EXISTS outbox_deliveries_due ON outbox (due_at, outbox_id) WHERE kind = 'webhook_subscription';

DROP INDEX IF EXISTS settlements_recipient_status, outbox_first, outbox_deliveries;

-- A change of a recipient without metadata, which has no row in recipient_metadata, does not call the function.
CREATE OR REPLACE TRIGGER recipients_metadata_update
  AFTER UPDATE OF metadata, country, is_active, verification_status ON recipients
  FOR EACH ROW WHEN (
    (OLD.metadata <> '{}' OR NEW.metadata <> '{}')
    AND (OLD.metadata, OLD.country, OLD.is_active, OLD.verification_status)
      IS DISTINCT FROM (NEW.metadata, NEW.country, NEW.is_active, NEW.verification_status))
  EXECUTE FUNCTION replace_recipient_metadata();
