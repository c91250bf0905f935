/**
 * Every order of what can happen to a settlement, walked with the `decide` that production runs. `npm run explore`
 * prints how much that is, and goes deeper.
 */
import { expect, test } from 'vitest';
import { type Exploration, explore } from './explore.ts';
import { rowsNotTaken, storyOf } from './report.ts';
import { SABOTAGES, type SabotageName } from './sabotage.ts';
import { DEPTH, everything, WHOLE } from './universe.ts';

/** Far below what is walked, so that a universe that loses its moves is noticed. */
const NODES_MIN = 20_000;
const explorations: Exploration[] = [];

test.each([...WHOLE, everything(DEPTH)])('no order of happenings breaks a rule: $name', (universe) => {
  const exploration = explore(universe);
  explorations.push(exploration);
  const { fault } = exploration;
  expect(fault, fault && storyOf(universe, fault).join('\n')).toBeUndefined();
});

test('all universes together take each row of the table of transitions, and are not small', () => {
  expect(rowsNotTaken(explorations)).toEqual([]);
  expect(explorations.reduce((sum, { nodes }) => sum + nodes, 0)).toBeGreaterThan(NODES_MIN);
});

/** How many steps the shortest story of each sabotage has. */
const STEPS: Readonly<Record<SabotageName, number>> = {
  payout_under_way_is_failed: 5,
  late_answer_is_dropped: 9,
  return_before_funding_is_ignored: 2,
  returned_money_is_due_back: 3,
  payout_wait_never_ends: 4,
  evidence_judges_the_wait: 3,
  step_is_dated_by_its_first_try: 6,
  other_name_rejects: 2,
  amount_of_zero_is_received: 1,
  overpaid_names_the_payment: 2,
  payment_after_return_is_due: 5,
  return_names_what_was_due: 4,
  return_after_the_end_is_late_money: 4,
  deactivation_is_read_too_early: 4,
  cancel_overrules_the_money: 3,
  operators_overrule_the_rail: 9,
  unknown_is_failed: 5,
  refund_is_recorded_twice: 5,
  run_is_not_told: 2,
};

test.each(Object.entries(STEPS))('a fault that is put back is found: %s, in %i steps', (name, steps) => {
  const { universe, decide } = SABOTAGES[name as SabotageName];
  const { fault } = explore(universe, decide);
  expect(fault?.moves, fault && storyOf(universe, fault, decide).join('\n')).toHaveLength(steps);
});
