-- The time of a delivery's id is that of its process, before its row's. What deletes goes by both, as the guard goes by the
-- row's: one row that the guard refuses would fail the whole statement. A day has 24 hours here: where clocks change, days
-- of the session's time zone have 23 or 25.
CREATE OR REPLACE FUNCTION delete_expired_deliveries(retention_days integer, rows_max integer) RETURNS integer LANGUAGE plpgsql
  SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
  deleted integer;
  kept_since timestamptz;
BEGIN
  IF retention_days IS NULL OR retention_days < 90 OR rows_max IS NULL OR rows_max NOT BETWEEN 1 AND 10000 THEN
    RAISE EXCEPTION 'deliveries are kept for 90 days or more, and at most 10000 are deleted at once'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  kept_since := now() - make_interval(hours => 24 * retention_days);
  WITH expired AS MATERIALIZED (
    SELECT delivery_id FROM webhook_deliveries
    WHERE delivery_id < id_at(kept_since) AND created_at < kept_since AND status <> 'pending'
    ORDER BY delivery_id LIMIT rows_max FOR UPDATE SKIP LOCKED
  ), gone AS (
    -- The status is read again from the locked row: a redelivery may have been asked for meanwhile.
    DELETE FROM webhook_deliveries d USING expired e
    WHERE d.delivery_id = e.delivery_id AND d.status <> 'pending' RETURNING 1
  )
  SELECT count(*) INTO deleted FROM gone;
  RETURN deleted;
END $$;

-- A delivery is permanent for 90 days, for every role.
CREATE OR REPLACE FUNCTION refuse_early_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.created_at < now() - make_interval(hours => 24 * 90) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'rows of % are permanent for 90 days', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
