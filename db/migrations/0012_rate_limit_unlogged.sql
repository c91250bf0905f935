-- Counting is not worth a write to the log.
ALTER TABLE "rate_limits" SET UNLOGGED;
