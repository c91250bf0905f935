-- Divides events, attempts and quotes into months, by the time in their ids. The present tables become first partitions.

-- No row is deleted any more. A trigger for each statement does not protect the partitions, one for each row does.
DROP TRIGGER events_permanent ON events;
DROP TRIGGER events_retained ON events;
DROP TRIGGER webhook_attempts_permanent ON webhook_attempts;
DROP TRIGGER webhook_attempts_retained ON webhook_attempts;
DROP TRIGGER quotes_permanent ON quotes;

DO $$
DECLARE
  name text;
  index_name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['events', 'webhook_attempts', 'quotes'] LOOP
    EXECUTE format('ALTER TABLE %I RENAME TO %I', name, name || '_first');
    FOR index_name IN
      SELECT relname FROM pg_index JOIN pg_class ON oid = indexrelid
      WHERE indrelid = format('public.%I', name || '_first')::regclass
    LOOP
      EXECUTE format('ALTER INDEX %I RENAME TO %I', index_name, index_name || '_first');
    END LOOP;
  END LOOP;
END $$;

-- Only retention by rows read it.
DROP INDEX events_created_first;

CREATE TABLE events (LIKE events_first) PARTITION BY RANGE (event_id);
ALTER TABLE events ADD CONSTRAINT events_pkey PRIMARY KEY (event_id);
CREATE INDEX events_org_created ON events (org_id, created_at, event_id);
CREATE INDEX events_org_type ON events (org_id, type, created_at, event_id);
CREATE TRIGGER events_permanent BEFORE UPDATE OR DELETE OR TRUNCATE ON events
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER events_rows_permanent BEFORE UPDATE OR DELETE ON events
  FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TABLE webhook_attempts (LIKE webhook_attempts_first) PARTITION BY RANGE (delivery_id);
ALTER TABLE webhook_attempts ADD CONSTRAINT webhook_attempts_delivery_id_number_pk PRIMARY KEY (delivery_id, number);
CREATE TRIGGER webhook_attempts_permanent BEFORE UPDATE OR DELETE OR TRUNCATE ON webhook_attempts
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER webhook_attempts_rows_permanent BEFORE UPDATE OR DELETE ON webhook_attempts
  FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TABLE quotes (LIKE quotes_first) PARTITION BY RANGE (quote_id);
ALTER TABLE quotes ADD CONSTRAINT quotes_pkey PRIMARY KEY (quote_id);
CREATE INDEX quotes_org ON quotes (org_id, created_at);
CREATE TRIGGER quotes_permanent BEFORE UPDATE OR DELETE OR TRUNCATE ON quotes
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER quotes_rows_permanent BEFORE UPDATE OR DELETE ON quotes
  FOR EACH ROW EXECUTE FUNCTION refuse_change();

DO $$
DECLARE
  name text;
  bound text;
  privilege record;
BEGIN
  FOREACH name IN ARRAY ARRAY['events', 'webhook_attempts', 'quotes'] LOOP
    -- Running processes use the new table before migrate grants all privileges again.
    FOR privilege IN
      SELECT privilege_type AS type, grantee::regrole::text AS role FROM pg_class, aclexplode(relacl)
      WHERE oid = format('public.%I', name || '_first')::regclass AND grantee NOT IN (0, relowner)
    LOOP
      EXECUTE format('GRANT %s ON %I TO %s', privilege.type, name, privilege.role);
    END LOOP;
    SELECT substring(pg_get_constraintdef(oid) FROM '''([0-9a-f-]+)''') INTO bound FROM pg_constraint
      WHERE conrelid = format('public.%I', name || '_first')::regclass AND conname = 'first_partition';
    EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()',
      name || '_never_truncated', name || '_first');
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (%L)', name, name || '_first', bound);
    EXECUTE format('ALTER TABLE %I DROP CONSTRAINT first_partition', name || '_first');
  END LOOP;
END $$;
