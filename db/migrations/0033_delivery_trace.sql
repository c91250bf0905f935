ALTER TABLE "webhook_deliveries" ADD COLUMN "traceparent" text;--> statement-breakpoint
INSERT INTO "sweeps" ("kind") VALUES ('webhook_subscription');
