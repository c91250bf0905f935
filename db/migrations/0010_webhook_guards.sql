-- The history of deliveries stays true: what an attempt came to is written once, and nothing of it is removed.
ALTER TABLE "webhooks"
  ADD CONSTRAINT "webhooks_status" CHECK ("status" IN ('enabled', 'disabled') AND ("status" = 'disabled') = ("disabled_reason" IS NOT NULL)),
  ADD CONSTRAINT "webhooks_secret" CHECK (("secret_sealed" IS NULL) = ("deleted_at" IS NOT NULL)),
  ADD CONSTRAINT "webhooks_event_types" CHECK (cardinality("event_types") > 0);
--> statement-breakpoint
ALTER TABLE "webhook_deliveries"
  ADD CONSTRAINT "webhook_deliveries_status" CHECK ("status" IN ('pending', 'succeeded', 'exhausted', 'skipped', 'canceled')),
  ADD CONSTRAINT "webhook_deliveries_next" CHECK (("status" = 'pending') = ("next_attempt_at" IS NOT NULL)),
  ADD CONSTRAINT "webhook_deliveries_generation" CHECK ("generation" >= 1 AND "prior_attempts" >= 0);
--> statement-breakpoint
CREATE FUNCTION "refuse_attempt_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.outcome <> 'pending' THEN
    RAISE EXCEPTION 'what an attempt came to is permanent' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
--> statement-breakpoint
CREATE TRIGGER "webhook_attempts_outcome_once" BEFORE UPDATE ON "webhook_attempts" FOR EACH ROW EXECUTE FUNCTION "refuse_attempt_change"();
--> statement-breakpoint
CREATE TRIGGER "webhook_attempts_permanent" BEFORE DELETE OR TRUNCATE ON "webhook_attempts" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
--> statement-breakpoint
CREATE TRIGGER "webhook_deliveries_permanent" BEFORE DELETE OR TRUNCATE ON "webhook_deliveries" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
