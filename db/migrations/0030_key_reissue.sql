CREATE TABLE "key_reissues" (
	"reissue_id" text PRIMARY KEY NOT NULL,
	"org_id" text NOT NULL,
	"requested_by" text NOT NULL,
	"requested_at" timestamp (3) with time zone NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL,
	"confirmed_by" text,
	"key_id" text,
	CONSTRAINT "key_reissues_two_operators" CHECK (("key_reissues"."confirmed_by" IS NULL) = ("key_reissues"."key_id" IS NULL) AND "key_reissues"."confirmed_by" IS DISTINCT FROM "key_reissues"."requested_by")
);
--> statement-breakpoint
ALTER TABLE "key_reissues" ADD CONSTRAINT "key_reissues_org_id_organizations_org_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("org_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "key_reissues" ADD CONSTRAINT "key_reissues_key_id_api_keys_key_id_fk" FOREIGN KEY ("key_id") REFERENCES "public"."api_keys"("key_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "key_reissues_org" ON "key_reissues" USING btree ("org_id","requested_at");