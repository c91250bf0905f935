ALTER TABLE "api_keys" ADD COLUMN "event_sequence" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "event_at" timestamp (3) with time zone;