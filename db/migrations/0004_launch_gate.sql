CREATE TABLE "launch_gate_approvals" (
	"evidence_id" text NOT NULL,
	"operator" text NOT NULL,
	"approved_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "launch_gate_approvals_evidence_id_operator_pk" PRIMARY KEY("evidence_id","operator")
);
--> statement-breakpoint
CREATE TABLE "launch_gate_evidence" (
	"evidence_id" text PRIMARY KEY NOT NULL,
	"gate" text NOT NULL,
	"environment" text NOT NULL,
	"corridor" text NOT NULL,
	"reference" text NOT NULL,
	"sha256" "bytea" NOT NULL,
	"recorded_by" text NOT NULL,
	"recorded_at" timestamp (3) with time zone NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL,
	"revoked_by" text,
	"revoked_at" timestamp (3) with time zone
);
--> statement-breakpoint
ALTER TABLE "launch_gate_approvals" ADD CONSTRAINT "launch_gate_approvals_evidence_id_launch_gate_evidence_evidence_id_fk" FOREIGN KEY ("evidence_id") REFERENCES "public"."launch_gate_evidence"("evidence_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "launch_gate_evidence_scope" ON "launch_gate_evidence" USING btree ("environment","corridor");