-- A verification moves along its table and no other way, and has exactly what its state needs.
CREATE TABLE "verification_transition_rules" (
  "from_status" text NOT NULL,
  "to_status" text NOT NULL,
  PRIMARY KEY ("from_status", "to_status")
);
--> statement-breakpoint
INSERT INTO "verification_transition_rules" ("from_status", "to_status") VALUES
  ('pending', 'in_review'), ('pending', 'verified'), ('pending', 'rejected'), ('pending', 'expired'),
  ('in_review', 'verified'), ('in_review', 'rejected'), ('in_review', 'expired');
--> statement-breakpoint
CREATE FUNCTION "refuse_verification_transition"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.status <> 'pending' THEN
      RAISE EXCEPTION 'a verification begins as pending, not %', NEW.status USING ERRCODE = 'check_violation';
    END IF;
  ELSIF NEW.status <> OLD.status AND NOT EXISTS (
    SELECT 1 FROM verification_transition_rules WHERE from_status = OLD.status AND to_status = NEW.status
  ) THEN
    RAISE EXCEPTION 'no verification moves from % to %', OLD.status, NEW.status USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END $$;
--> statement-breakpoint
CREATE TRIGGER "verifications_transition" BEFORE INSERT OR UPDATE OF "status" ON "verifications"
  FOR EACH ROW EXECUTE FUNCTION "refuse_verification_transition"();
--> statement-breakpoint
ALTER TABLE "verifications"
  ADD CONSTRAINT "verifications_reason" CHECK (("status" = 'rejected') = ("rejection_reason" IS NOT NULL)),
  ADD CONSTRAINT "verifications_name" CHECK ("status" = 'verified' OR "verified_name" IS NULL),
  ADD CONSTRAINT "verifications_decided" CHECK (("status" IN ('verified', 'rejected')) = ("decided_at" IS NOT NULL)),
  ADD CONSTRAINT "verifications_window" CHECK ("expires_at" > "created_at");
