-- How months are made ahead and dropped, and how deliveries are deleted.

-- Which months there are. from_at is null for the first partition.
CREATE OR REPLACE FUNCTION partitions()
  RETURNS TABLE (table_name text, name text, from_at timestamptz, to_at timestamptz) LANGUAGE sql STABLE AS $$
  SELECT parent.relname::text AS table_name, leaf.relname::text AS name,
    time_of_id(substring(pg_get_expr(leaf.relpartbound, leaf.oid) FROM 'FROM \(''([^'']+)''\)')) AS from_at,
    time_of_id(substring(pg_get_expr(leaf.relpartbound, leaf.oid) FROM 'TO \(''([^'']+)''\)')) AS to_at
  FROM pg_inherits
  JOIN pg_class leaf ON leaf.oid = inhrelid AND leaf.relkind = 'r'
  JOIN pg_class parent ON parent.oid = inhparent AND parent.relkind = 'p'
  WHERE parent.relnamespace = 'public'::regnamespace
$$;

-- Adds the months that are missing, up to so many after this one. Nobody waits for it: the new table is empty, and others
-- read and write while it is attached. Only one process adds or drops at a time.
CREATE OR REPLACE FUNCTION add_partitions(months_ahead integer) RETURNS integer LANGUAGE plpgsql
  SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
  parent record;
  month timestamp;
  leaf text;
  added integer := 0;
BEGIN
  IF months_ahead IS NULL OR months_ahead NOT BETWEEN 1 AND 12 THEN
    RAISE EXCEPTION 'partitions are made 1 to 12 months ahead' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF NOT pg_try_advisory_xact_lock(7146302) THEN
    RETURN 0;
  END IF;
  FOR parent IN SELECT table_name, max(to_at) AT TIME ZONE 'UTC' AS ends_at FROM partitions() GROUP BY table_name LOOP
    FOR month IN SELECT generate_series(parent.ends_at,
      date_trunc('month', now() AT TIME ZONE 'UTC') + months_ahead * interval '1 month', interval '1 month')
    LOOP
      leaf := parent.table_name || to_char(month, '_YYYY_MM');
      EXECUTE format('CREATE TABLE public.%I (LIKE public.%I INCLUDING ALL)', leaf, parent.table_name);
      EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON public.%I FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change()',
        parent.table_name || '_never_truncated', leaf);
      -- Within a month, no two events of an object have the same number. Over all months, the object's row counts them.
      IF parent.table_name = 'events' THEN
        EXECUTE format('CREATE UNIQUE INDEX %I ON public.%I (object_id, sequence)', leaf || '_object_sequence', leaf);
      END IF;
      EXECUTE format('ALTER TABLE public.%I ATTACH PARTITION public.%I FOR VALUES FROM (%L) TO (%L)', parent.table_name, leaf,
        id_at(month AT TIME ZONE 'UTC'), id_at((month + interval '1 month') AT TIME ZONE 'UTC'));
      added := added + 1;
    END LOOP;
  END LOOP;
  RETURN added;
EXCEPTION WHEN lock_not_available THEN
  RETURN 0;
END $$;

-- Drops the oldest expired month of one table. A month of events or attempts stays while a delivery refers to it. It runs as the owner and holds its own bounds, because the service's role
-- gives the arguments; db/privilege.ts lets that role alone call it. Returns the name of what it dropped, or null: also
-- when somebody reads the table for longer than a moment, because others would wait behind the drop.
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
  SELECT name INTO dropped FROM partitions()
    WHERE to_at < now() - make_interval(hours => 24 * CASE table_name WHEN 'quotes' THEN quote_days ELSE event_days END)
      AND CASE table_name
        WHEN 'events' THEN NOT EXISTS (SELECT FROM webhook_deliveries WHERE event_id < id_at(to_at))
        WHEN 'webhook_attempts' THEN NOT EXISTS (SELECT FROM webhook_deliveries WHERE delivery_id < id_at(to_at))
        ELSE true END
    ORDER BY to_at LIMIT 1;
  IF dropped IS NOT NULL THEN
    EXECUTE format('DROP TABLE public.%I', dropped);
  END IF;
  RETURN dropped;
EXCEPTION WHEN lock_not_available THEN
  RETURN NULL;
END $$;

-- Deletes the oldest deliveries that are old enough and not pending: somebody may have asked for a pending one again. Two
-- callers at once take different ones. As above, it holds its own bounds.
CREATE OR REPLACE FUNCTION delete_expired_deliveries(retention_days integer, rows_max integer) RETURNS integer LANGUAGE plpgsql
  SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
  deleted integer;
BEGIN
  IF retention_days IS NULL OR retention_days < 90 OR rows_max IS NULL OR rows_max NOT BETWEEN 1 AND 10000 THEN
    RAISE EXCEPTION 'deliveries are kept for 90 days or more, and at most 10000 are deleted at once'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  WITH expired AS MATERIALIZED (
    SELECT delivery_id FROM webhook_deliveries
    WHERE delivery_id < id_at(now() - make_interval(hours => 24 * retention_days)) AND status <> 'pending'
    ORDER BY delivery_id LIMIT rows_max FOR UPDATE SKIP LOCKED
  ), gone AS (
    -- The status is read again from the locked row: a redelivery may have been asked for meanwhile.
    DELETE FROM webhook_deliveries d USING expired e
    WHERE d.delivery_id = e.delivery_id AND d.status <> 'pending' RETURNING 1
  )
  SELECT count(*) INTO deleted FROM gone;
  RETURN deleted;
END $$;

-- An id of a delivery, with the time of its event's: both are of the same month.
CREATE OR REPLACE FUNCTION new_id_with(event_id text) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT left(event_id, 14) || '7' || substr(gen_random_uuid()::text, 16)
$$;

-- A delivery is permanent for 90 days, for every role.
CREATE OR REPLACE FUNCTION refuse_early_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.created_at < now() - interval '90 days' THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'rows of % are permanent for 90 days', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;

-- Processes of the released version call it, and new_id, until they are replaced.
CREATE OR REPLACE FUNCTION delete_expired_events(retention_days integer, rows_max integer) RETURNS integer LANGUAGE sql
  SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
  SELECT delete_expired_deliveries(retention_days, rows_max)
$$;

REVOKE EXECUTE ON FUNCTION add_partitions(integer), drop_expired_partition(integer, integer),
  delete_expired_deliveries(integer, integer) FROM PUBLIC;
