-- 0010 divides events, attempts and quotes into months. This prepares it, because a check of a whole table must not hold a
-- lock that others wait for.

-- The first characters of a UUIDv7 that is made at this time. An id of that time or later sorts after it. No id is of a time
-- before 1970.
CREATE FUNCTION id_at(at timestamptz) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT overlay(
    lpad(to_hex(greatest(0, floor(extract(epoch FROM at) * 1000))::bigint), 12, '0') PLACING '-' FROM 9 FOR 0)
$$;

-- When a UUIDv7 was made.
CREATE FUNCTION time_of_id(id text) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT to_timestamp(('x' || lpad(replace(left(id, 13), '-', ''), 16, '0'))::bit(64)::bigint / 1000.0)
$$;

-- Dropping a partition would lock each table that a foreign key leads to or from, so there are none. The statement that
-- writes an event writes its deliveries, and the one that changes a delivery writes its attempt.
ALTER TABLE webhook_attempts DROP CONSTRAINT webhook_attempts_delivery_id_webhook_deliveries_delivery_id_fk;
ALTER TABLE webhook_deliveries DROP CONSTRAINT webhook_deliveries_event_id_events_event_id_fk;
ALTER TABLE events DROP CONSTRAINT events_org_id_organizations_org_id_fk;
ALTER TABLE quotes DROP CONSTRAINT quotes_org_id_organizations_org_id_fk;

-- The rows of today become the first partition. It ends in a week or later, so that processes can write until 0010.
DO $$
DECLARE
  bound text := id_at((date_trunc('month', (now() + interval '1 week') AT TIME ZONE 'UTC') + interval '1 month')
    AT TIME ZONE 'UTC');
BEGIN
  EXECUTE format('ALTER TABLE events ADD CONSTRAINT first_partition CHECK (event_id < %L) NOT VALID', bound);
  EXECUTE format('ALTER TABLE webhook_attempts ADD CONSTRAINT first_partition CHECK (delivery_id < %L) NOT VALID', bound);
  EXECUTE format('ALTER TABLE quotes ADD CONSTRAINT first_partition CHECK (quote_id < %L) NOT VALID', bound);
END $$;
