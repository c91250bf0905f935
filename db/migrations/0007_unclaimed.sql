-- What a lane may claim: next to it, deliveries that are under way cost a claim nothing.
CREATE INDEX IF NOT EXISTS webhook_deliveries_unclaimed
  ON webhook_deliveries (lane_key, org_id, webhook_id, next_attempt_at, delivery_id)
  WHERE lane_key IS NOT NULL AND claimed_by = 0;
