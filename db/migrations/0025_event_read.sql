DROP INDEX "events_org";--> statement-breakpoint
CREATE INDEX "events_org_created" ON "events" USING btree ("org_id","created_at","event_id");--> statement-breakpoint
CREATE INDEX "events_org_type" ON "events" USING btree ("org_id","type","created_at","event_id");