CREATE TABLE "sweeps" (
	"kind" text PRIMARY KEY NOT NULL,
	"after_id" text DEFAULT '' NOT NULL,
	"restarted" bigint DEFAULT 0 NOT NULL,
	"finished_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
INSERT INTO "sweeps" ("kind") VALUES ('settlement'), ('verification');
