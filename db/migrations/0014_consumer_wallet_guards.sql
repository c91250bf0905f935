-- A consumer is one proved contact; a code is tried five times at most and used once; quotes and wallets never change.
ALTER TABLE "consumers"
  ADD CONSTRAINT "consumers_one_contact" CHECK (("email" IS NULL) <> ("phone" IS NULL));
--> statement-breakpoint
ALTER TABLE "otp_challenges"
  ADD CONSTRAINT "otp_challenges_channel" CHECK ("channel" IN ('email', 'phone')),
  ADD CONSTRAINT "otp_challenges_attempts" CHECK ("attempts" BETWEEN 0 AND 5);
--> statement-breakpoint
CREATE FUNCTION "refuse_otp_reset"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.attempts < OLD.attempts OR OLD.consumed_at IS NOT NULL AND NEW.consumed_at IS DISTINCT FROM OLD.consumed_at THEN
    RAISE EXCEPTION 'tries and uses of a code are not taken back' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
--> statement-breakpoint
CREATE TRIGGER "otp_challenges_no_reset" BEFORE UPDATE ON "otp_challenges" FOR EACH ROW EXECUTE FUNCTION "refuse_otp_reset"();
--> statement-breakpoint
CREATE FUNCTION "refuse_session_revival"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.ended_at IS NOT NULL OR NEW.expires_at > OLD.expires_at THEN
    RAISE EXCEPTION 'a session that has ended stays so, and none lasts longer than it was given' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
--> statement-breakpoint
CREATE TRIGGER "consumer_sessions_no_revival" BEFORE UPDATE ON "consumer_sessions" FOR EACH ROW EXECUTE FUNCTION "refuse_session_revival"();
--> statement-breakpoint
CREATE TRIGGER "quotes_permanent" BEFORE UPDATE OR DELETE OR TRUNCATE ON "quotes" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
--> statement-breakpoint
ALTER TABLE "wallets"
  ADD CONSTRAINT "wallets_threshold" CHECK ("threshold" BETWEEN 1 AND jsonb_array_length("signers"));
--> statement-breakpoint
CREATE TRIGGER "wallets_permanent" BEFORE UPDATE OR DELETE OR TRUNCATE ON "wallets" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
