-- Almost every delivery succeeds. The few others are found by their status.
CREATE INDEX IF NOT EXISTS webhook_deliveries_unsucceeded ON webhook_deliveries (status, created_at)
  WHERE status <> 'succeeded';
-- For a page of the deliveries of a subscription that ended without success.
CREATE INDEX IF NOT EXISTS webhook_deliveries_ended ON webhook_deliveries (webhook_id, status, created_at, delivery_id)
  WHERE status IN ('exhausted', 'skipped', 'canceled');

DROP INDEX IF EXISTS webhook_deliveries_status;
