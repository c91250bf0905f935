CREATE TABLE "audit_entries" (
	"audit_id" text PRIMARY KEY NOT NULL,
	"org_id" text NOT NULL,
	"object_id" text NOT NULL,
	"action" text NOT NULL,
	"operator" text NOT NULL,
	"note" text NOT NULL,
	"at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "banklink_tokens" (
	"token_hash" "bytea" PRIMARY KEY NOT NULL,
	"org_id" text NOT NULL,
	"user_reference" text,
	"created_at" timestamp (3) with time zone NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL,
	"exchanged_at" timestamp (3) with time zone
);
--> statement-breakpoint
ALTER TABLE "audit_entries" ADD CONSTRAINT "audit_entries_org_id_organizations_org_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("org_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "banklink_tokens" ADD CONSTRAINT "banklink_tokens_org_id_organizations_org_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("org_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "audit_entries_object" ON "audit_entries" USING btree ("object_id","at");