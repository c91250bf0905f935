ALTER TABLE "settlements" ADD COLUMN "payee_sealed" text;--> statement-breakpoint
ALTER TABLE "settlements" ADD COLUMN "payee_sha256" text;