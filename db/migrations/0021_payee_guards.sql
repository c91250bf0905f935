-- What a settlement was accepted for never changes: who is paid, how much, and over which corridor. The sealed payee
-- may be sealed again under another key; its digest stays.
CREATE FUNCTION "refuse_other_terms"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.org_id, NEW.recipient_id, NEW.corridor, NEW.payment_method, NEW.payout_rail, NEW.amount_minor,
      NEW.source_currency, NEW.destination_amount_minor, NEW.destination_currency, NEW.input_fee_minor,
      NEW.platform_fee_minor, NEW.total_fees_minor)
    IS DISTINCT FROM
     (OLD.org_id, OLD.recipient_id, OLD.corridor, OLD.payment_method, OLD.payout_rail, OLD.amount_minor,
      OLD.source_currency, OLD.destination_amount_minor, OLD.destination_currency, OLD.input_fee_minor,
      OLD.platform_fee_minor, OLD.total_fees_minor)
    OR NEW.payee_sha256 IS DISTINCT FROM OLD.payee_sha256
    OR (NEW.payee_sealed IS NULL) <> (OLD.payee_sealed IS NULL) THEN
    RAISE EXCEPTION 'the terms of settlement % are permanent', OLD.settlement_id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
--> statement-breakpoint
CREATE TRIGGER "settlements_terms_permanent" BEFORE UPDATE ON "settlements" FOR EACH ROW EXECUTE FUNCTION "refuse_other_terms"();
--> statement-breakpoint
-- A settlement ends only with a closed journal: nothing is held for it any more, everything that came in is booked, and
-- no evidence is pending. Checked when the transaction commits, once all of its postings are there.
CREATE FUNCTION "refuse_open_journal"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  booked bigint;
BEGIN
  IF EXISTS (
    SELECT 1 FROM postings WHERE settlement_id = NEW.settlement_id AND account IN ('settlement_funds', 'payout_in_transit')
    GROUP BY account, currency HAVING sum(amount_minor) <> 0
  ) THEN
    RAISE EXCEPTION 'settlement % cannot end while money is held for it', NEW.settlement_id USING ERRCODE = 'check_violation';
  END IF;
  SELECT coalesce(sum(amount_minor), 0) INTO booked FROM postings
    WHERE settlement_id = NEW.settlement_id AND account IN ('card_clearing', 'bank_clearing', 'internal_funding');
  IF booked <> (SELECT amount_received_minor FROM settlements WHERE settlement_id = NEW.settlement_id) THEN
    RAISE EXCEPTION 'settlement % cannot end while money that came in is not booked', NEW.settlement_id USING ERRCODE = 'check_violation';
  END IF;
  IF EXISTS (SELECT 1 FROM evidence WHERE settlement_id = NEW.settlement_id AND pending) THEN
    RAISE EXCEPTION 'settlement % cannot end while evidence is pending', NEW.settlement_id USING ERRCODE = 'check_violation';
  END IF;
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE CONSTRAINT TRIGGER "settlements_journal_closed" AFTER UPDATE ON "settlements"
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (NEW.status IN ('settled', 'rejected', 'expired', 'failed', 'canceled') AND OLD.status IS DISTINCT FROM NEW.status)
  EXECUTE FUNCTION "refuse_open_journal"();
