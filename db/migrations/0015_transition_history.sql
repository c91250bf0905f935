-- The history obeys the table of transitions as the state does: the first row begins at accepted, every other is a rule.
ALTER TABLE "settlement_transitions"
  ADD CONSTRAINT "settlement_transitions_rule" FOREIGN KEY ("from_status", "to_status") REFERENCES "settlement_transition_rules" ("from_status", "to_status"),
  ADD CONSTRAINT "settlement_transitions_first" CHECK ("from_status" IS NOT NULL OR ("to_status" = 'accepted' AND "sequence" = 1));
