-- What test helpers asked to arrive, in minor units. Null outside the sandbox.
ALTER TABLE settlements ADD COLUMN sandbox_requested_minor bigint;
