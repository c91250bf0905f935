CREATE TABLE "idempotency_secrets" (
	"org_id" text NOT NULL,
	"key" text NOT NULL,
	"body_sealed" text NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "idempotency_secrets_org_id_key_pk" PRIMARY KEY("org_id","key")
);
--> statement-breakpoint
ALTER TABLE "idempotency_secrets" ADD CONSTRAINT "idempotency_secrets_org_id_organizations_org_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("org_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "idempotency_secrets_expiry" ON "idempotency_secrets" USING btree ("expires_at");