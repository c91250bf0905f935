-- Tells the APIs that a settlement changed, so that a read with `Prefer: wait` is woken instead of polling. The
-- notification is sent by the commit, and only when the version moved.
CREATE FUNCTION "settlement_changed"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('settlement_changed', NEW.settlement_id);
  RETURN NULL;
END;
$$;
--> statement-breakpoint
CREATE TRIGGER "settlements_changed" AFTER UPDATE ON "settlements"
  FOR EACH ROW WHEN (OLD.version IS DISTINCT FROM NEW.version) EXECUTE FUNCTION "settlement_changed"();
