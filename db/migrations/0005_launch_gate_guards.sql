-- Evidence is permanent. It is revoked once and otherwise never changed; an operator has one spelling, so that
-- nobody is two operators.
ALTER TABLE "launch_gate_evidence"
  ADD CONSTRAINT "launch_gate_evidence_times" CHECK ("expires_at" > "recorded_at"),
  ADD CONSTRAINT "launch_gate_evidence_revocation" CHECK (("revoked_at" IS NULL) = ("revoked_by" IS NULL));
--> statement-breakpoint
ALTER TABLE "launch_gate_approvals"
  ADD CONSTRAINT "launch_gate_approvals_operator" CHECK ("operator" = lower(btrim("operator")) AND "operator" <> '');
--> statement-breakpoint
CREATE FUNCTION "refuse_evidence_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.revoked_at IS NOT NULL OR NEW.revoked_at IS NULL
    OR to_jsonb(NEW) - 'revoked_at' - 'revoked_by' <> to_jsonb(OLD) - 'revoked_at' - 'revoked_by' THEN
    RAISE EXCEPTION 'gate evidence is revoked once and otherwise never changed' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
--> statement-breakpoint
CREATE TRIGGER "launch_gate_evidence_unchanged" BEFORE UPDATE ON "launch_gate_evidence" FOR EACH ROW EXECUTE FUNCTION "refuse_evidence_change"();
--> statement-breakpoint
CREATE TRIGGER "launch_gate_evidence_permanent" BEFORE DELETE OR TRUNCATE ON "launch_gate_evidence" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
--> statement-breakpoint
CREATE TRIGGER "launch_gate_approvals_permanent" BEFORE UPDATE OR DELETE OR TRUNCATE ON "launch_gate_approvals" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
