import { fc, test as property } from '@fast-check/vitest';
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
  VERIFICATION_THRESHOLD_MINOR,
  waitWindowMs,
} from '../../../domain/settlement/state.ts';
import { allLives } from '../../support/arbitrary.ts';

/** The contract's table (§6): where each state may lead. */
const CONTRACT: Record<SettlementStatus, readonly SettlementStatus[]> = {
  accepted: ['rejected', 'compliance_hold', 'awaiting_funds', 'canceled'],
  compliance_hold: ['awaiting_funds', 'rejected', 'expired', 'canceled'],
  awaiting_funds: ['funded', 'failed', 'expired', 'canceled'],
  funded: ['paying_out', 'failed'],
  paying_out: ['settled', 'needs_review', 'failed'],
  needs_review: ['settled', 'failed'],
  settled: [],
  rejected: [],
  expired: [],
  failed: [],
  canceled: [],
};

const PAIRS = SETTLEMENT_STATUSES.flatMap((from) => SETTLEMENT_STATUSES.map((to) => [from, to] as const));
const exitsOf = (from: SettlementStatus) =>
  TRANSITIONS.filter((transition) => transition.from === from).map(({ to }) => to);

describe('the table of transitions', () => {
  test('has every row of the contract, once, and no other', () => {
    const rows = TRANSITIONS.map(({ from, to }) => `${from} → ${to}`);
    expect(new Set(rows)).toEqual(
      new Set([
        'null → accepted',
        ...PAIRS.filter(([from, to]) => CONTRACT[from].includes(to)).map(([from, to]) => `${from} → ${to}`),
      ]),
    );
    expect(new Set(rows).size).toBe(rows.length);
  });

  test('allows exactly the moves of its rows', () => {
    for (const [from, to] of PAIRS) expect(canMove(from, to)).toBe(CONTRACT[from].includes(to));
  });

  test('has no exit from a terminal state, and one from every other', () => {
    expect(SETTLEMENT_STATUSES.filter((status) => exitsOf(status).length === 0)).toEqual(TERMINAL_STATUSES);
    expect(SETTLEMENT_STATUSES.filter(isTerminal)).toEqual(TERMINAL_STATUSES);
  });

  test('reaches every state from acceptance', () => {
    expect(new Set(allLives().flat())).toEqual(new Set(SETTLEMENT_STATUSES));
  });

  property.prop([fc.infiniteStream(fc.nat())])(
    'leads any random walk to a terminal state, and enters no state twice',
    (choices) => {
      const walked: SettlementStatus[] = ['accepted'];
      for (const choice of choices) {
        const exits = exitsOf(walked.at(-1) ?? 'accepted');
        const next = exits[choice % exits.length];
        if (next === undefined) break;
        expect(walked).not.toContain(next);
        walked.push(next);
      }
      expect(TERMINAL_STATUSES).toContain(walked.at(-1));
    },
  );

  test('settles only what was funded and paid out, and pays out only what was funded', () => {
    for (const life of allLives()) {
      if (life.includes('settled')) expect(life.slice(-3, -1)).toContain('paying_out');
      if (life.includes('paying_out')) expect(life[life.indexOf('paying_out') - 1]).toBe('funded');
      if (life.includes('funded')) expect(life[life.indexOf('funded') - 1]).toBe('awaiting_funds');
    }
  });
});

describe('canceling a settlement', () => {
  test('is refused past awaiting_funds', () => {
    expect(SETTLEMENT_STATUSES.filter((status) => canMove(status, 'canceled'))).toEqual([
      'accepted',
      'compliance_hold',
      'awaiting_funds',
    ]);
    expect(UNFUNDED_STATUSES).toEqual(['accepted', 'compliance_hold', 'awaiting_funds']);
  });
});

describe('the windows of states', () => {
  const MINUTE_MS = 60_000;
  const DAY_MS = 1_440 * MINUTE_MS;

  test.each([
    ['compliance_hold', 'card', 7 * DAY_MS],
    ['awaiting_funds', 'card', 30 * MINUTE_MS],
    ['awaiting_funds', 'ach', 5 * DAY_MS],
    ['awaiting_funds', 'wire', 10 * DAY_MS],
    ['paying_out', 'wire', 3 * DAY_MS],
  ] as const)('%s by %s lasts %i ms', (status, method, windowMs) => {
    expect(waitWindowMs(status, method)).toBe(windowMs);
  });

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

test('the recipient must be verified from 1 000.00 on', () => {
  expect(VERIFICATION_THRESHOLD_MINOR).toBe(100_000n);
});
