CREATE TABLE "verifications" (
	"verification_id" text PRIMARY KEY NOT NULL,
	"org_id" text NOT NULL,
	"recipient_id" text NOT NULL,
	"verification_type" text NOT NULL,
	"document_type" text,
	"document_country" text,
	"status" text NOT NULL,
	"provider" text NOT NULL,
	"applicant_id" text,
	"level_name" text,
	"subject_name" text NOT NULL,
	"given_contact" jsonb,
	"verified_name" text,
	"rejection_reason" text,
	"request_id" text NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"decided_at" timestamp (3) with time zone,
	"expires_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "verifications" ADD CONSTRAINT "verifications_org_id_organizations_org_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("org_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "verifications" ADD CONSTRAINT "verifications_recipient_id_recipients_recipient_id_fk" FOREIGN KEY ("recipient_id") REFERENCES "public"."recipients"("recipient_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "verifications_open" ON "verifications" USING btree ("recipient_id","verification_type") WHERE status IN ('pending', 'in_review');--> statement-breakpoint
CREATE INDEX "verifications_recipient" ON "verifications" USING btree ("recipient_id","created_at","verification_id");