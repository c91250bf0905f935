-- Link tokens that have expired are deleted.
CREATE INDEX IF NOT EXISTS banklink_tokens_expiry ON banklink_tokens (expires_at);
