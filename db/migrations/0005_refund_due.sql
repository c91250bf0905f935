-- For the count of settlements with money that is due back, and their list. On a large table, build it before by hand:
-- CREATE INDEX CONCURRENTLY, with this name and condition.
CREATE INDEX IF NOT EXISTS settlements_refund_due ON settlements (updated_at)
  WHERE amount_received_minor > amount_refunded_minor
    AND (status IN ('rejected', 'expired', 'failed', 'canceled')
      OR status IN ('funded', 'paying_out', 'needs_review', 'settled')
        AND amount_received_minor - amount_refunded_minor > amount_minor);
