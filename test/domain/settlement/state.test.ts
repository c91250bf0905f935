import { describe, expect, test } from 'vitest';
import { PAYMENT_METHODS } from '../../../domain/payment-method.ts';
import {
  canMove,
  isTerminal,
  SETTLEMENT_STATUSES,
  type SettlementStatus,
  settlementTime,
  TERMINAL_STATUSES,
  TRANSITIONS,
  UNFUNDED_STATUSES,
  waitWindowMs,
} from '../../../domain/settlement/state.ts';

const PAIRS = SETTLEMENT_STATUSES.flatMap((from) => SETTLEMENT_STATUSES.map((to) => [from, to] as const));
const exitsOf = (from: SettlementStatus) =>
  TRANSITIONS.filter((transition) => transition.from === from).map(({ to }) => to);

describe('the table of transitions', () => {
  test('allows exactly the moves of its rows', () => {
    for (const [from, to] of PAIRS) expect(canMove(from, to)).toBe(exitsOf(from).includes(to));
  });

  test('has no exit from a terminal state, and one from every other', () => {
    expect(SETTLEMENT_STATUSES.filter((status) => exitsOf(status).length === 0)).toEqual(TERMINAL_STATUSES);
    expect(SETTLEMENT_STATUSES.filter(isTerminal)).toEqual(TERMINAL_STATUSES);
  });

  test('lets a settlement be canceled exactly until it is funded', () => {
    expect(SETTLEMENT_STATUSES.filter((status) => canMove(status, 'canceled'))).toEqual(UNFUNDED_STATUSES);
  });
});

describe('the windows of states', () => {
  const MINUTE_MS = 60_000;
  const DAY_MS = 1_440 * MINUTE_MS;

  test.each(PAYMENT_METHODS)('belong, by %s, to exactly the states that a time limit can end', (method) => {
    const timed = SETTLEMENT_STATUSES.filter((status) => canMove(status, 'expired') || canMove(status, 'needs_review'));
    expect(SETTLEMENT_STATUSES.filter((status) => waitWindowMs(status, method) !== undefined)).toEqual(timed);
  });

  test("run on the settlement's own clock", () => {
    expect(settlementTime({ clockOffsetMs: DAY_MS }, new Date('2026-11-21T08:00:00.000Z'))).toEqual(
      new Date('2026-11-22T08:00:00.000Z'),
    );
  });
});
