CREATE TABLE "api_keys" (
	"key_id" text PRIMARY KEY NOT NULL,
	"org_id" text NOT NULL,
	"name" text NOT NULL,
	"scope" text NOT NULL,
	"status" text NOT NULL,
	"environment" text NOT NULL,
	"prefix" text NOT NULL,
	"key_hash" "bytea" NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"last_used_at" timestamp (3) with time zone,
	"expires_at" timestamp (3) with time zone,
	"revoked_at" timestamp (3) with time zone,
	"rotated_to" text
);
--> statement-breakpoint
CREATE TABLE "certificates" (
	"cert_id" text PRIMARY KEY NOT NULL,
	"org_id" text NOT NULL,
	"settlement_id" text NOT NULL,
	"content" "bytea" NOT NULL,
	"sha256" "bytea" NOT NULL,
	"signature" text NOT NULL,
	"issued_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "events" (
	"event_id" text PRIMARY KEY NOT NULL,
	"org_id" text NOT NULL,
	"type" text NOT NULL,
	"object_type" text NOT NULL,
	"object_id" text NOT NULL,
	"sequence" integer NOT NULL,
	"body" "bytea" NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "evidence" (
	"evidence_id" text PRIMARY KEY NOT NULL,
	"position" bigserial NOT NULL,
	"settlement_id" text NOT NULL,
	"provider" text NOT NULL,
	"event_id" text NOT NULL,
	"kind" text NOT NULL,
	"amount_minor" bigint,
	"currency" text,
	"failure" jsonb,
	"sha256" "bytea" NOT NULL,
	"pending" boolean NOT NULL,
	"received_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "provider_events" (
	"provider" text NOT NULL,
	"event_id" text NOT NULL,
	"type" text NOT NULL,
	"body_sha256" "bytea" NOT NULL,
	"body_sealed" text NOT NULL,
	"matched" boolean NOT NULL,
	"received_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "provider_events_provider_event_id_pk" PRIMARY KEY("provider","event_id")
);
--> statement-breakpoint
CREATE TABLE "idempotency_keys" (
	"org_id" text NOT NULL,
	"key" text NOT NULL,
	"request_hash" "bytea" NOT NULL,
	"field_digests" jsonb NOT NULL,
	"resource_id" text NOT NULL,
	"response_status" integer NOT NULL,
	"response_body" "bytea" NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "idempotency_keys_org_id_key_pk" PRIMARY KEY("org_id","key")
);
--> statement-breakpoint
CREATE TABLE "organizations" (
	"org_id" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"name" text NOT NULL,
	"country" text NOT NULL,
	"contact_email" text NOT NULL,
	"environment" text NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "outbox" (
	"outbox_id" bigserial PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"object_id" text NOT NULL,
	"signal" text,
	"context" jsonb NOT NULL,
	"request_id" text NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"due_at" timestamp with time zone DEFAULT now() NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"last_error" text
);
--> statement-breakpoint
CREATE TABLE "recipients" (
	"recipient_id" text PRIMARY KEY NOT NULL,
	"org_id" text NOT NULL,
	"kind" text NOT NULL,
	"entity_type" text NOT NULL,
	"name" text NOT NULL,
	"country" text NOT NULL,
	"email" text,
	"phone" text,
	"bank_details" jsonb,
	"account_number_sealed" text,
	"mobile_details" jsonb,
	"metadata" jsonb NOT NULL,
	"is_active" boolean NOT NULL,
	"verification_status" text NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "postings" (
	"settlement_id" text NOT NULL,
	"step" text NOT NULL,
	"line" integer NOT NULL,
	"account" text NOT NULL,
	"currency" text NOT NULL,
	"amount_minor" bigint NOT NULL,
	"at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "postings_settlement_id_step_line_pk" PRIMARY KEY("settlement_id","step","line")
);
--> statement-breakpoint
CREATE TABLE "settlement_exceptions" (
	"exception_id" text PRIMARY KEY NOT NULL,
	"settlement_id" text NOT NULL,
	"type" text NOT NULL,
	"at" timestamp (3) with time zone NOT NULL,
	"evidence_id" text
);
--> statement-breakpoint
CREATE TABLE "settlement_transitions" (
	"settlement_id" text NOT NULL,
	"sequence" integer NOT NULL,
	"from_status" text,
	"to_status" text NOT NULL,
	"at" timestamp (3) with time zone NOT NULL,
	"reason" text,
	"evidence_id" text,
	CONSTRAINT "settlement_transitions_settlement_id_sequence_pk" PRIMARY KEY("settlement_id","sequence")
);
--> statement-breakpoint
CREATE TABLE "settlements" (
	"settlement_id" text PRIMARY KEY NOT NULL,
	"org_id" text NOT NULL,
	"origin" text NOT NULL,
	"status" text NOT NULL,
	"version" integer NOT NULL,
	"corridor" text NOT NULL,
	"recipient_id" text NOT NULL,
	"payment_method" text NOT NULL,
	"payout_rail" text NOT NULL,
	"amount_minor" bigint NOT NULL,
	"source_currency" text NOT NULL,
	"destination_amount_minor" bigint NOT NULL,
	"destination_currency" text NOT NULL,
	"rate_millionths" bigint NOT NULL,
	"input_fee_minor" bigint NOT NULL,
	"platform_fee_minor" bigint NOT NULL,
	"total_fees_minor" bigint NOT NULL,
	"amount_received_minor" bigint NOT NULL,
	"purpose" text,
	"reference" text,
	"metadata" jsonb NOT NULL,
	"environment" text NOT NULL,
	"failure" jsonb,
	"payment_token_sealed" text,
	"expires_at" timestamp (3) with time zone,
	"clock_offset_ms" bigint NOT NULL,
	"certificate_id" text,
	"request_id" text NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_org_id_organizations_org_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("org_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "certificates" ADD CONSTRAINT "certificates_org_id_organizations_org_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("org_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "certificates" ADD CONSTRAINT "certificates_settlement_id_settlements_settlement_id_fk" FOREIGN KEY ("settlement_id") REFERENCES "public"."settlements"("settlement_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "events" ADD CONSTRAINT "events_org_id_organizations_org_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("org_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "evidence" ADD CONSTRAINT "evidence_settlement_id_settlements_settlement_id_fk" FOREIGN KEY ("settlement_id") REFERENCES "public"."settlements"("settlement_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "idempotency_keys" ADD CONSTRAINT "idempotency_keys_org_id_organizations_org_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("org_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "recipients" ADD CONSTRAINT "recipients_org_id_organizations_org_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("org_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "postings" ADD CONSTRAINT "postings_settlement_id_settlements_settlement_id_fk" FOREIGN KEY ("settlement_id") REFERENCES "public"."settlements"("settlement_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "settlement_exceptions" ADD CONSTRAINT "settlement_exceptions_settlement_id_settlements_settlement_id_fk" FOREIGN KEY ("settlement_id") REFERENCES "public"."settlements"("settlement_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "settlement_transitions" ADD CONSTRAINT "settlement_transitions_settlement_id_settlements_settlement_id_fk" FOREIGN KEY ("settlement_id") REFERENCES "public"."settlements"("settlement_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "settlements" ADD CONSTRAINT "settlements_org_id_organizations_org_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("org_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "settlements" ADD CONSTRAINT "settlements_recipient_id_recipients_recipient_id_fk" FOREIGN KEY ("recipient_id") REFERENCES "public"."recipients"("recipient_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "api_keys_key_hash" ON "api_keys" USING btree ("key_hash");--> statement-breakpoint
CREATE INDEX "api_keys_org" ON "api_keys" USING btree ("org_id","created_at");--> statement-breakpoint
CREATE UNIQUE INDEX "certificates_settlement" ON "certificates" USING btree ("settlement_id");--> statement-breakpoint
CREATE UNIQUE INDEX "events_object_sequence" ON "events" USING btree ("object_id","sequence");--> statement-breakpoint
CREATE INDEX "events_org" ON "events" USING btree ("org_id","created_at");--> statement-breakpoint
CREATE UNIQUE INDEX "evidence_event" ON "evidence" USING btree ("provider","event_id");--> statement-breakpoint
CREATE INDEX "evidence_settlement" ON "evidence" USING btree ("settlement_id","position");--> statement-breakpoint
CREATE INDEX "outbox_due" ON "outbox" USING btree ("due_at");--> statement-breakpoint
CREATE INDEX "recipients_org" ON "recipients" USING btree ("org_id","created_at","recipient_id");--> statement-breakpoint
CREATE UNIQUE INDEX "settlement_exceptions_once" ON "settlement_exceptions" USING btree ("settlement_id","type","evidence_id");--> statement-breakpoint
CREATE UNIQUE INDEX "settlement_transitions_once" ON "settlement_transitions" USING btree ("settlement_id","to_status");--> statement-breakpoint
CREATE INDEX "settlements_org" ON "settlements" USING btree ("org_id","created_at","settlement_id");--> statement-breakpoint
CREATE INDEX "settlements_recipient_status" ON "settlements" USING btree ("recipient_id","status");