-- A list by recipient, by reference or by metadata reads status, corridor and payment method from its index, as the
-- list by these alone does. The rows of the metadata are written again, with the three columns.
TRUNCATE "settlement_metadata";--> statement-breakpoint
DROP INDEX "settlements_org_recipient";--> statement-breakpoint
DROP INDEX "settlements_org_reference";--> statement-breakpoint
ALTER TABLE "settlement_metadata" ADD COLUMN "status" text NOT NULL;--> statement-breakpoint
ALTER TABLE "settlement_metadata" ADD COLUMN "corridor" text NOT NULL;--> statement-breakpoint
ALTER TABLE "settlement_metadata" ADD COLUMN "payment_method" text NOT NULL;--> statement-breakpoint
CREATE INDEX "settlements_org_recipient" ON "settlements" USING btree ("org_id","recipient_id","status","corridor","payment_method","created_at","settlement_id");--> statement-breakpoint
CREATE INDEX "settlements_org_reference" ON "settlements" USING btree ("org_id","reference","status","corridor","payment_method","created_at","settlement_id") WHERE "settlements"."reference" IS NOT NULL;--> statement-breakpoint
ALTER TABLE "settlement_metadata" DROP CONSTRAINT "settlement_metadata_pk";
--> statement-breakpoint
ALTER TABLE "settlement_metadata" ADD CONSTRAINT "settlement_metadata_pk" PRIMARY KEY("org_id","key","value","status","corridor","payment_method","created_at","settlement_id");--> statement-breakpoint
-- As the owner: the service's role reads the table, and writes it only through these triggers. The previous version,
-- which serves while this migration runs, writes settlements without these rows.
CREATE FUNCTION "insert_settlement_metadata"() RETURNS trigger LANGUAGE plpgsql
  SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  INSERT INTO settlement_metadata (org_id, key, value, status, corridor, payment_method, created_at, settlement_id)
  SELECT NEW.org_id, entry.key, entry.value, NEW.status, NEW.corridor, NEW.payment_method, NEW.created_at, NEW.settlement_id
  FROM jsonb_each_text(NEW.metadata) AS entry;
  RETURN NULL;
END;
$$;
--> statement-breakpoint
CREATE FUNCTION "move_settlement_metadata"() RETURNS trigger LANGUAGE plpgsql
  SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  UPDATE settlement_metadata m SET status = NEW.status
  FROM jsonb_each_text(OLD.metadata) AS entry
  WHERE (m.org_id, m.key, m.value, m.status, m.corridor, m.payment_method, m.created_at, m.settlement_id) =
    (OLD.org_id, entry.key, entry.value, OLD.status, OLD.corridor, OLD.payment_method, OLD.created_at, OLD.settlement_id);
  RETURN NULL;
END;
$$;
--> statement-breakpoint
CREATE TRIGGER "settlements_metadata_insert" AFTER INSERT ON "settlements"
  FOR EACH ROW WHEN (NEW.metadata <> '{}') EXECUTE FUNCTION "insert_settlement_metadata"();
--> statement-breakpoint
CREATE TRIGGER "settlements_metadata_move" AFTER UPDATE OF "status" ON "settlements"
  FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status AND OLD.metadata <> '{}')
  EXECUTE FUNCTION "move_settlement_metadata"();
--> statement-breakpoint
INSERT INTO "settlement_metadata" ("org_id", "key", "value", "status", "corridor", "payment_method", "created_at", "settlement_id")
SELECT s."org_id", entry."key", entry."value", s."status", s."corridor", s."payment_method", s."created_at", s."settlement_id"
FROM "settlements" s CROSS JOIN jsonb_each_text(s."metadata") AS entry;
