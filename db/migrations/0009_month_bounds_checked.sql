-- Reads the tables while others read and write them.
ALTER TABLE events VALIDATE CONSTRAINT first_partition;
ALTER TABLE webhook_attempts VALIDATE CONSTRAINT first_partition;
ALTER TABLE quotes VALIDATE CONSTRAINT first_partition;
