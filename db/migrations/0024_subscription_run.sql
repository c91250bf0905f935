CREATE SEQUENCE "public"."webhook_run_numbers" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE TABLE "webhook_runs" (
	"webhook_id" text PRIMARY KEY NOT NULL,
	"running" boolean DEFAULT false NOT NULL
);
--> statement-breakpoint
DROP INDEX "outbox_due";--> statement-breakpoint
DROP INDEX "webhook_deliveries_pending";--> statement-breakpoint
DROP INDEX "webhook_deliveries_waiting";--> statement-breakpoint
ALTER TABLE "outbox" ADD COLUMN "claimed" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "webhook_deliveries" ADD COLUMN "endings" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "webhook_deliveries" ADD COLUMN "claimed_by" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "webhook_deliveries" ADD COLUMN "redelivery_requested" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "webhooks" ADD COLUMN "endings" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "webhook_runs" ADD CONSTRAINT "webhook_runs_webhook_id_webhooks_webhook_id_fk" FOREIGN KEY ("webhook_id") REFERENCES "public"."webhooks"("webhook_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "outbox_first" ON "outbox" USING btree ("outbox_id") WHERE "outbox"."kind" <> 'webhook_subscription';--> statement-breakpoint
CREATE INDEX "outbox_deliveries" ON "outbox" USING btree ("outbox_id") WHERE "outbox"."kind" = 'webhook_subscription';--> statement-breakpoint
CREATE UNIQUE INDEX "outbox_subscription" ON "outbox" USING btree ("object_id") WHERE "outbox"."kind" = 'webhook_subscription' AND NOT "outbox"."claimed";--> statement-breakpoint
CREATE INDEX "webhook_deliveries_due" ON "webhook_deliveries" USING btree ("webhook_id","endings","next_attempt_at","delivery_id") WHERE "webhook_deliveries"."status" = 'pending';--> statement-breakpoint
-- Without a default: a trigger sets it for a process of the previous version, which does not know the column.
ALTER TABLE "webhook_deliveries" ALTER COLUMN "endings" DROP DEFAULT;
--> statement-breakpoint
CREATE FUNCTION "count_endings_of_delivery"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  SELECT endings INTO NEW.endings FROM webhooks WHERE webhook_id = NEW.webhook_id;
  RETURN NEW;
END $$;
--> statement-breakpoint
CREATE TRIGGER "webhook_deliveries_endings" BEFORE INSERT ON "webhook_deliveries"
  FOR EACH ROW WHEN (NEW.endings IS NULL) EXECUTE FUNCTION "count_endings_of_delivery"();
--> statement-breakpoint
INSERT INTO "webhook_runs" ("webhook_id") SELECT "webhook_id" FROM "webhooks";
--> statement-breakpoint
CREATE FUNCTION "add_webhook_run"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO webhook_runs (webhook_id) VALUES (NEW.webhook_id);
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE TRIGGER "webhooks_run" AFTER INSERT ON "webhooks" FOR EACH ROW EXECUTE FUNCTION "add_webhook_run"();
--> statement-breakpoint
-- A UUIDv7, as db/id.ts makes it: the milliseconds, then random bits. For rows that a statement adds by itself.
CREATE FUNCTION "new_id"() RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT encode(set_bit(set_bit(overlay(
    uuid_send(gen_random_uuid())
    PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6
  ), 52, 1), 53, 1), 'hex')::uuid::text
$$;
