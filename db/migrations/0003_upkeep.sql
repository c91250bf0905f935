-- What the database does by itself, and the functions that statements call.

-- A UUIDv7, as db/id.ts makes it: the milliseconds, then random bits. For rows that a statement adds by itself.
CREATE FUNCTION new_id() RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT encode(set_bit(set_bit(overlay(
    uuid_send(gen_random_uuid())
    PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6
  ), 52, 1), 53, 1), 'hex')::uuid::text
$$;

-- Tells the APIs that a settlement changed, so that a read with `Prefer: wait` is woken instead of polling. The commit
-- sends the notification, and only when the version moved.
CREATE FUNCTION settlement_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('settlement_changed', NEW.settlement_id);
  RETURN NULL;
END $$;

CREATE TRIGGER settlements_changed AFTER UPDATE ON settlements
  FOR EACH ROW WHEN (OLD.version IS DISTINCT FROM NEW.version) EXECUTE FUNCTION settlement_changed();

-- Keeps settlement_metadata equal to the settlements. It runs as the owner: the service's role can only read the table.
CREATE FUNCTION insert_settlement_metadata() RETURNS trigger LANGUAGE plpgsql
  SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  INSERT INTO settlement_metadata
    (org_id, key, value, status, corridor, payment_method, created_at, settlement_id)
  SELECT NEW.org_id, entry.key, entry.value, NEW.status, NEW.corridor, NEW.payment_method, NEW.created_at,
    NEW.settlement_id
  FROM jsonb_each_text(NEW.metadata) AS entry;
  RETURN NULL;
END $$;

CREATE FUNCTION move_settlement_metadata() RETURNS trigger LANGUAGE plpgsql
  SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  UPDATE settlement_metadata m SET status = NEW.status
  FROM jsonb_each_text(OLD.metadata) AS entry
  WHERE (m.org_id, m.key, m.value, m.status, m.corridor, m.payment_method, m.created_at, m.settlement_id) =
    (OLD.org_id, entry.key, entry.value, OLD.status, OLD.corridor, OLD.payment_method, OLD.created_at,
     OLD.settlement_id);
  RETURN NULL;
END $$;

CREATE TRIGGER settlements_metadata_insert AFTER INSERT ON settlements
  FOR EACH ROW WHEN (NEW.metadata <> '{}') EXECUTE FUNCTION insert_settlement_metadata();
CREATE TRIGGER settlements_metadata_move AFTER UPDATE OF status ON settlements
  FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status AND OLD.metadata <> '{}')
  EXECUTE FUNCTION move_settlement_metadata();

-- Keeps recipient_metadata equal to the recipients, whose metadata may change. It runs as the owner too.
CREATE FUNCTION replace_recipient_metadata() RETURNS trigger LANGUAGE plpgsql
  SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    DELETE FROM recipient_metadata m USING jsonb_each_text(OLD.metadata) AS entry
    WHERE (m.org_id, m.key, m.value, m.country, m.is_active, m.verification_status, m.created_at, m.recipient_id) =
      (OLD.org_id, entry.key, entry.value, OLD.country, OLD.is_active, OLD.verification_status, OLD.created_at,
       OLD.recipient_id);
  END IF;
  INSERT INTO recipient_metadata
    (org_id, key, value, country, is_active, verification_status, created_at, recipient_id)
  SELECT NEW.org_id, entry.key, entry.value, NEW.country, NEW.is_active, NEW.verification_status, NEW.created_at,
    NEW.recipient_id
  FROM jsonb_each_text(NEW.metadata) AS entry;
  RETURN NULL;
END $$;

CREATE TRIGGER recipients_metadata_insert AFTER INSERT ON recipients
  FOR EACH ROW WHEN (NEW.metadata <> '{}') EXECUTE FUNCTION replace_recipient_metadata();
CREATE TRIGGER recipients_metadata_update AFTER UPDATE OF metadata, country, is_active, verification_status ON recipients
  FOR EACH ROW WHEN (
    (OLD.metadata, OLD.country, OLD.is_active, OLD.verification_status)
      IS DISTINCT FROM (NEW.metadata, NEW.country, NEW.is_active, NEW.verification_status))
  EXECUTE FUNCTION replace_recipient_metadata();

-- Every sweep has its row from the start, so that one that never runs is noticed.
INSERT INTO sweeps (kind) VALUES ('settlement'), ('verification'), ('webhook_subscription'), ('webhook_lane');

-- Deletes the oldest events that are old enough, with their deliveries and attempts. An event with a pending delivery
-- stays: somebody may have asked for it again. Two callers at once take different events. It runs as the owner and
-- holds its own bounds, because the service's role gives the arguments; db/privilege.ts lets that role alone call it.
CREATE FUNCTION delete_expired_events(retention_days integer, rows_max integer) RETURNS integer LANGUAGE plpgsql
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
  DELETE FROM webhook_attempts a USING webhook_deliveries d
    WHERE d.delivery_id = a.delivery_id AND d.event_id = ANY (expired);
  DELETE FROM webhook_deliveries d WHERE d.event_id = ANY (expired);
  DELETE FROM events e WHERE e.event_id = ANY (expired);
  RETURN cardinality(expired);
END $$;

REVOKE EXECUTE ON FUNCTION delete_expired_events(integer, integer) FROM PUBLIC;
