CREATE INDEX "settlements_request" ON "settlements" USING btree ("request_id");--> statement-breakpoint
CREATE INDEX "verifications_request" ON "verifications" USING btree ("request_id");