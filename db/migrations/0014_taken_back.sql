-- What was taken back may exceed the settlement's amount, where more had come and was given back. It never exceeds what came.
-- Rows of today satisfy this by the check that it replaces, so they are not read again.
ALTER TABLE settlements
  ADD CONSTRAINT settlements_money CHECK (
    amount_minor > 0
    AND destination_amount_minor > 0
    AND total_fees_minor = input_fee_minor + platform_fee_minor
    AND total_fees_minor < amount_minor
    AND amount_refunded_minor >= 0
    AND amount_received_minor >= amount_refunded_minor
    AND taken_back_minor BETWEEN 0 AND amount_received_minor) NOT VALID,
  DROP CONSTRAINT settlements_amounts;
