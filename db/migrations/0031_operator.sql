CREATE TABLE "operators" (
	"operator_id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"token_hash" "bytea" NOT NULL,
	"pepper_id" text NOT NULL,
	"added_by" text NOT NULL,
	"added_at" timestamp (3) with time zone NOT NULL,
	"revoked_by" text,
	"revoked_at" timestamp (3) with time zone,
	CONSTRAINT "operators_name_spelling" CHECK ("operators"."name" = lower(btrim("operators"."name")) AND "operators"."name" <> ''),
	CONSTRAINT "operators_revocation" CHECK (("operators"."revoked_at" IS NULL) = ("operators"."revoked_by" IS NULL))
);
--> statement-breakpoint
CREATE UNIQUE INDEX "operators_token_hash" ON "operators" USING btree ("token_hash");--> statement-breakpoint
CREATE UNIQUE INDEX "operators_name" ON "operators" USING btree ("name") WHERE "operators"."revoked_at" IS NULL;