-- Processes of the previous version, which serve while this migration runs and after it, number an event by the largest
-- number so far and do not count in the object's row. So the database counts for them. A process that has counted
-- finds nothing to do here. The trigger can go once no process of the previous version runs any more.
CREATE FUNCTION "count_event"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  CASE NEW.object_type
    WHEN 'settlement' THEN
      UPDATE settlements SET event_sequence = NEW.sequence
        WHERE settlement_id = NEW.object_id AND event_sequence < NEW.sequence;
    WHEN 'recipient' THEN
      UPDATE recipients SET event_sequence = NEW.sequence, event_at = NEW.created_at
        WHERE recipient_id = NEW.object_id AND event_sequence < NEW.sequence;
    WHEN 'verification' THEN
      UPDATE verifications SET event_sequence = NEW.sequence, event_at = NEW.created_at
        WHERE verification_id = NEW.object_id AND event_sequence < NEW.sequence;
    WHEN 'webhook' THEN
      UPDATE webhooks SET event_sequence = NEW.sequence, event_at = NEW.created_at
        WHERE webhook_id = NEW.object_id AND event_sequence < NEW.sequence;
    ELSE NULL;
  END CASE;
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE TRIGGER "events_counted" AFTER INSERT ON "events"
  FOR EACH ROW WHEN (NEW.object_type <> 'certificate') EXECUTE FUNCTION "count_event"();
--> statement-breakpoint
-- A settlement's events are dated by its row, so its row is not older than its latest event.
UPDATE "settlements" SET "event_sequence" = latest.sequence, "updated_at" = greatest("updated_at", latest.at)
  FROM (SELECT object_id, max(sequence) AS sequence, max(created_at) AS at FROM events GROUP BY object_id) AS latest
  WHERE "settlement_id" = latest.object_id;
--> statement-breakpoint
UPDATE "recipients" SET "event_sequence" = latest.sequence, "event_at" = latest.at
  FROM (SELECT object_id, max(sequence) AS sequence, max(created_at) AS at FROM events GROUP BY object_id) AS latest
  WHERE "recipient_id" = latest.object_id;
--> statement-breakpoint
UPDATE "verifications" SET "event_sequence" = latest.sequence, "event_at" = latest.at
  FROM (SELECT object_id, max(sequence) AS sequence, max(created_at) AS at FROM events GROUP BY object_id) AS latest
  WHERE "verification_id" = latest.object_id;
--> statement-breakpoint
UPDATE "webhooks" SET "event_sequence" = latest.sequence, "event_at" = latest.at
  FROM (SELECT object_id, max(sequence) AS sequence, max(created_at) AS at FROM events GROUP BY object_id) AS latest
  WHERE "webhook_id" = latest.object_id;
