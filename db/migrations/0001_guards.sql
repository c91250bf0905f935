-- What the service promises holds even against its own mistakes: no transition outside the table, no unbalanced
-- journal, no change to what is permanent.
CREATE TABLE "settlement_transition_rules" (
  "from_status" text NOT NULL,
  "to_status" text NOT NULL,
  PRIMARY KEY ("from_status", "to_status")
);
--> statement-breakpoint
INSERT INTO "settlement_transition_rules" ("from_status", "to_status") VALUES
  ('accepted', 'rejected'), ('accepted', 'compliance_hold'), ('accepted', 'awaiting_funds'), ('accepted', 'canceled'),
  ('compliance_hold', 'awaiting_funds'), ('compliance_hold', 'rejected'), ('compliance_hold', 'expired'), ('compliance_hold', 'canceled'),
  ('awaiting_funds', 'funded'), ('awaiting_funds', 'failed'), ('awaiting_funds', 'expired'), ('awaiting_funds', 'canceled'),
  ('funded', 'paying_out'), ('funded', 'failed'),
  ('paying_out', 'settled'), ('paying_out', 'failed'), ('paying_out', 'needs_review'),
  ('needs_review', 'settled'), ('needs_review', 'failed');
--> statement-breakpoint
CREATE FUNCTION "refuse_settlement_transition"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.status <> 'accepted' THEN
      RAISE EXCEPTION 'a settlement begins as accepted, not %', NEW.status USING ERRCODE = 'check_violation';
    END IF;
  ELSIF NEW.status <> OLD.status AND NOT EXISTS (
    SELECT 1 FROM settlement_transition_rules WHERE from_status = OLD.status AND to_status = NEW.status
  ) THEN
    RAISE EXCEPTION 'no settlement moves from % to %', OLD.status, NEW.status USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END $$;
--> statement-breakpoint
CREATE TRIGGER "settlements_transition" BEFORE INSERT OR UPDATE OF "status" ON "settlements"
  FOR EACH ROW EXECUTE FUNCTION "refuse_settlement_transition"();
--> statement-breakpoint
ALTER TABLE "settlements"
  ADD CONSTRAINT "settlements_amounts" CHECK ("amount_minor" > 0 AND "destination_amount_minor" >= 0 AND "total_fees_minor" = "input_fee_minor" + "platform_fee_minor" AND "total_fees_minor" < "amount_minor" AND "amount_received_minor" >= 0),
  ADD CONSTRAINT "settlements_clock" CHECK ("clock_offset_ms" >= 0);
--> statement-breakpoint
CREATE FUNCTION "refuse_unbalanced_postings"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM added GROUP BY settlement_id, step, currency HAVING sum(amount_minor) <> 0) THEN
    RAISE EXCEPTION 'a posting set must sum to zero per currency' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE TRIGGER "postings_balanced" AFTER INSERT ON "postings" REFERENCING NEW TABLE AS "added"
  FOR EACH STATEMENT EXECUTE FUNCTION "refuse_unbalanced_postings"();
--> statement-breakpoint
CREATE FUNCTION "refuse_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of % are permanent', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
--> statement-breakpoint
CREATE TRIGGER "idempotency_keys_permanent" BEFORE UPDATE OR DELETE OR TRUNCATE ON "idempotency_keys" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
--> statement-breakpoint
CREATE TRIGGER "settlement_transitions_permanent" BEFORE UPDATE OR DELETE OR TRUNCATE ON "settlement_transitions" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
--> statement-breakpoint
CREATE TRIGGER "postings_permanent" BEFORE UPDATE OR DELETE OR TRUNCATE ON "postings" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
--> statement-breakpoint
CREATE TRIGGER "provider_events_permanent" BEFORE UPDATE OR DELETE OR TRUNCATE ON "provider_events" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
--> statement-breakpoint
CREATE TRIGGER "events_permanent" BEFORE UPDATE OR DELETE OR TRUNCATE ON "events" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
--> statement-breakpoint
CREATE TRIGGER "certificates_permanent" BEFORE UPDATE OR DELETE OR TRUNCATE ON "certificates" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
