-- A stored event is permanent, but not the key that its body is sealed with: a rotation seals it anew, and changes nothing else.
CREATE FUNCTION "refuse_all_but_reseal"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF to_jsonb(NEW) - 'body_sealed' <> to_jsonb(OLD) - 'body_sealed'
    OR split_part(NEW.body_sealed, '.', 1) = split_part(OLD.body_sealed, '.', 1) THEN
    RAISE EXCEPTION 'rows of % are permanent; their bodies are only sealed anew, by another key', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
--> statement-breakpoint
DROP TRIGGER "provider_events_permanent" ON "provider_events";
--> statement-breakpoint
CREATE TRIGGER "provider_events_permanent" BEFORE UPDATE OF "provider", "event_id", "type", "body_sha256", "matched", "received_at" OR DELETE OR TRUNCATE ON "provider_events" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
--> statement-breakpoint
CREATE TRIGGER "provider_events_resealed_only" BEFORE UPDATE ON "provider_events" FOR EACH ROW EXECUTE FUNCTION "refuse_all_but_reseal"();
