CREATE INDEX "events_created" ON "events" USING btree ("created_at");--> statement-breakpoint
-- Events and their deliveries stay permanent for 90 days, for every role. After that, rows of theirs may be deleted, and
-- the service's role still has no privilege for it: it can only call the function below, which the owner's rights run.
CREATE FUNCTION "refuse_early_deletion"() RETURNS trigger LANGUAGE plpgsql AS $$
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
--> statement-breakpoint
DROP TRIGGER "events_permanent" ON "events";
--> statement-breakpoint
CREATE TRIGGER "events_permanent" BEFORE UPDATE OR TRUNCATE ON "events" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
--> statement-breakpoint
CREATE TRIGGER "events_retained" BEFORE DELETE ON "events" FOR EACH ROW EXECUTE FUNCTION "refuse_early_deletion"();
--> statement-breakpoint
DROP TRIGGER "webhook_deliveries_permanent" ON "webhook_deliveries";
--> statement-breakpoint
CREATE TRIGGER "webhook_deliveries_permanent" BEFORE TRUNCATE ON "webhook_deliveries" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
--> statement-breakpoint
CREATE TRIGGER "webhook_deliveries_retained" BEFORE DELETE ON "webhook_deliveries" FOR EACH ROW EXECUTE FUNCTION "refuse_early_deletion"();
--> statement-breakpoint
DROP TRIGGER "webhook_attempts_permanent" ON "webhook_attempts";
--> statement-breakpoint
CREATE TRIGGER "webhook_attempts_permanent" BEFORE TRUNCATE ON "webhook_attempts" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
--> statement-breakpoint
CREATE TRIGGER "webhook_attempts_retained" BEFORE DELETE ON "webhook_attempts" FOR EACH ROW EXECUTE FUNCTION "refuse_early_deletion"();
--> statement-breakpoint
-- Deletes the oldest events that are old enough, with their deliveries and attempts. An event with a pending delivery
-- stays: somebody may have asked for it again. Two callers at once take different events.
CREATE FUNCTION "delete_expired_events"("retention_days" integer, "rows_max" integer) RETURNS integer LANGUAGE plpgsql
  SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
  expired text[];
BEGIN
  IF retention_days IS NULL OR retention_days < 90 OR rows_max IS NULL OR rows_max NOT BETWEEN 1 AND 10000 THEN
    RAISE EXCEPTION 'events are kept for 90 days or more, and at most 10000 are deleted at once'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  expired := ARRAY(
    SELECT e.event_id FROM events e
    WHERE e.created_at < now() - make_interval(hours => 24 * retention_days) AND NOT EXISTS (
      SELECT FROM webhook_deliveries d WHERE d.event_id = e.event_id AND d.status = 'pending')
    ORDER BY e.created_at LIMIT rows_max FOR UPDATE OF e SKIP LOCKED);
  -- Read again under the lock: a redelivery may have been asked for meanwhile.
  PERFORM FROM webhook_deliveries d WHERE d.event_id = ANY (expired) ORDER BY d.delivery_id FOR UPDATE;
  expired := ARRAY(
    SELECT id FROM unnest(expired) AS id WHERE NOT EXISTS (
      SELECT FROM webhook_deliveries d WHERE d.event_id = id AND d.status = 'pending'));
  DELETE FROM webhook_attempts a USING webhook_deliveries d WHERE d.delivery_id = a.delivery_id AND d.event_id = ANY (expired);
  DELETE FROM webhook_deliveries d WHERE d.event_id = ANY (expired);
  DELETE FROM events e WHERE e.event_id = ANY (expired);
  RETURN cardinality(expired);
END $$;
--> statement-breakpoint
REVOKE EXECUTE ON FUNCTION "delete_expired_events"(integer, integer) FROM PUBLIC;
