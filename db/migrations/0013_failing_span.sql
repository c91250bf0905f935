ALTER TABLE "webhooks" ADD COLUMN "last_failed_at" timestamp (3) with time zone;
