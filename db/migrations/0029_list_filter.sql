CREATE TABLE "settlement_metadata" (
	"org_id" text NOT NULL,
	"key" text NOT NULL,
	"value" text NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"settlement_id" text NOT NULL,
	CONSTRAINT "settlement_metadata_pk" PRIMARY KEY("org_id","key","value","created_at","settlement_id")
);
--> statement-breakpoint
ALTER TABLE "settlement_metadata" ADD CONSTRAINT "settlement_metadata_settlement_id_settlements_settlement_id_fk" FOREIGN KEY ("settlement_id") REFERENCES "public"."settlements"("settlement_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "recipients_org_filter" ON "recipients" USING btree ("org_id","is_active","verification_status","created_at","recipient_id");--> statement-breakpoint
CREATE INDEX "recipients_org_country" ON "recipients" USING btree ("org_id","country","is_active","verification_status","created_at","recipient_id");--> statement-breakpoint
CREATE INDEX "settlements_org_filter" ON "settlements" USING btree ("org_id","status","corridor","payment_method","created_at","settlement_id");--> statement-breakpoint
CREATE INDEX "settlements_org_recipient" ON "settlements" USING btree ("org_id","recipient_id","created_at","settlement_id");--> statement-breakpoint
CREATE INDEX "settlements_org_reference" ON "settlements" USING btree ("org_id","reference","created_at","settlement_id") WHERE "settlements"."reference" IS NOT NULL;--> statement-breakpoint
INSERT INTO "settlement_metadata" ("org_id", "key", "value", "created_at", "settlement_id")
SELECT s."org_id", entry."key", entry."value", s."created_at", s."settlement_id"
FROM "settlements" s CROSS JOIN jsonb_each_text(s."metadata") AS entry;
