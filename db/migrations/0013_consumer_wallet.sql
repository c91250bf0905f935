CREATE TABLE "consumer_sessions" (
	"session_id" text PRIMARY KEY NOT NULL,
	"consumer_id" text NOT NULL,
	"token_hash" "bytea" NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL,
	"ended_at" timestamp (3) with time zone
);
--> statement-breakpoint
CREATE TABLE "consumers" (
	"consumer_id" text PRIMARY KEY NOT NULL,
	"email" text,
	"phone" text,
	"environment" text NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "otp_challenges" (
	"challenge_id" text PRIMARY KEY NOT NULL,
	"channel" text NOT NULL,
	"contact_hash" "bytea" NOT NULL,
	"contact_sealed" text NOT NULL,
	"code_hash" "bytea" NOT NULL,
	"code_sealed" text,
	"attempts" integer NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL,
	"consumed_at" timestamp (3) with time zone
);
--> statement-breakpoint
CREATE TABLE "quotes" (
	"quote_id" text PRIMARY KEY NOT NULL,
	"org_id" text NOT NULL,
	"corridor" text NOT NULL,
	"amount_minor" bigint NOT NULL,
	"source_currency" text NOT NULL,
	"payment_method" text NOT NULL,
	"payout_rail" text NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "wallets" (
	"wallet_id" text PRIMARY KEY NOT NULL,
	"org_id" text NOT NULL,
	"name" text NOT NULL,
	"network" text NOT NULL,
	"address" text NOT NULL,
	"signers" jsonb NOT NULL,
	"threshold" integer NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "consumer_sessions" ADD CONSTRAINT "consumer_sessions_consumer_id_consumers_consumer_id_fk" FOREIGN KEY ("consumer_id") REFERENCES "public"."consumers"("consumer_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "consumers" ADD CONSTRAINT "consumers_consumer_id_organizations_org_id_fk" FOREIGN KEY ("consumer_id") REFERENCES "public"."organizations"("org_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "quotes" ADD CONSTRAINT "quotes_org_id_organizations_org_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("org_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "wallets" ADD CONSTRAINT "wallets_org_id_organizations_org_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organizations"("org_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "consumer_sessions_token_hash" ON "consumer_sessions" USING btree ("token_hash");--> statement-breakpoint
CREATE INDEX "consumer_sessions_consumer" ON "consumer_sessions" USING btree ("consumer_id");--> statement-breakpoint
CREATE UNIQUE INDEX "consumers_email" ON "consumers" USING btree ("environment","email");--> statement-breakpoint
CREATE UNIQUE INDEX "consumers_phone" ON "consumers" USING btree ("environment","phone");--> statement-breakpoint
CREATE INDEX "otp_challenges_contact" ON "otp_challenges" USING btree ("contact_hash","created_at");--> statement-breakpoint
CREATE INDEX "otp_challenges_created" ON "otp_challenges" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "quotes_org" ON "quotes" USING btree ("org_id","created_at");--> statement-breakpoint
CREATE INDEX "wallets_org" ON "wallets" USING btree ("org_id","created_at","wallet_id");