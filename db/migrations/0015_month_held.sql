-- A delivery that is not deleted yet holds the month of its event and the one of its attempts, and no later month: one
-- that stays pending held all later ones, for every organization. A month stays for an hour more than its days, because
-- the clock of a process that makes ids may be behind: then the month's last rows are younger than their ids say. As
-- before, the function holds its own bounds.
CREATE OR REPLACE FUNCTION drop_expired_partition(event_days integer, quote_days integer) RETURNS text LANGUAGE plpgsql
  SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
  dropped text;
BEGIN
  IF event_days IS NULL OR event_days < 90 OR quote_days IS NULL OR quote_days < 1 THEN
    RAISE EXCEPTION 'events are kept for 90 days or more, and quotes for a day or more'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF NOT pg_try_advisory_xact_lock(7146302) THEN
    RETURN NULL;
  END IF;
  SELECT name INTO dropped FROM (
    SELECT table_name, name, to_at, coalesce(id_at(from_at), '') AS from_id, id_at(to_at) AS to_id FROM partitions()
  ) month
    WHERE to_at < now() - make_interval(hours => 1 + 24 * CASE table_name WHEN 'quotes' THEN quote_days ELSE event_days END)
      AND CASE table_name
        WHEN 'events' THEN NOT EXISTS (
          SELECT FROM webhook_deliveries WHERE event_id >= from_id AND event_id < to_id)
        WHEN 'webhook_attempts' THEN NOT EXISTS (
          SELECT FROM webhook_deliveries WHERE delivery_id >= from_id AND delivery_id < to_id)
        ELSE true END
    ORDER BY to_at LIMIT 1;
  IF dropped IS NOT NULL THEN
    EXECUTE format('DROP TABLE public.%I', dropped);
  END IF;
  RETURN dropped;
EXCEPTION WHEN lock_not_available THEN
  RETURN NULL;
END $$;
