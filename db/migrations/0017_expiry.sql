-- Link tokens and sessions that have expired are deleted.
CREATE INDEX IF NOT EXISTS banklink_tokens_expiry ON banklink_tokens (expires_at);
CREATE INDEX IF NOT EXISTS consumer_sessions_expiry ON consumer_sessions (expires_at);
