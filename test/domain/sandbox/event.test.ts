import { describe, expect, test } from 'vitest';
import { DomainError, ValidationError } from '../../../domain/error.ts';
import type { PaymentMethod } from '../../../domain/payment-method.ts';
import { type SandboxEvent, sandboxCommand } from '../../../domain/sandbox/event.ts';
import { SETTLEMENT_STATUSES, type Settlement, type SettlementStatus } from '../../../domain/settlement/state.ts';
import { certificateFacts } from '../../support/certificate.ts';

const settlementOf = (paymentMethod: PaymentMethod, status: SettlementStatus = 'awaiting_funds'): Settlement => ({
  ...certificateFacts().settlement,
  paymentMethod,
  status,
  amountReceivedMinor: 0n,
});

const command = (settlement: Settlement, asked: Parameters<typeof sandboxCommand>[1], underWayMinor = 0n) =>
  sandboxCommand(settlement, asked, underWayMinor);

const faultOf = (run: () => unknown): string | undefined => {
  try {
    run();
    return undefined;
  } catch (error) {
    if (error instanceof ValidationError) return error.faults.map((fault) => fault.field).join(' ');
    return error instanceof DomainError ? error.code : String(error);
  }
};

describe('an event that a test helper asks for', () => {
  test.each(['0', '0.00', '0.001', '100000.01', '-1'])('is refused with the amount %s', (amount) => {
    expect(faultOf(() => command(settlementOf('card'), { event: 'collection_succeeded', amount }))).toBe('amount');
  });

  test.each(['collection_failed', 'payout_confirmed', 'payout_refused'] as const)(
    'is refused with an amount when it is %s',
    (event) => {
      expect(faultOf(() => command(settlementOf('card', 'paying_out'), { event, amount: '1.00' }))).toBe('amount');
    },
  );

  test.each(['ach', 'wire', 'internal'] as const)('is refused as a dispute of a payment by %s', (method) => {
    expect(faultOf(() => command(settlementOf(method), { event: 'dispute_opened' }))).toBe('event');
  });

  test.each(['collection_succeeded', 'collection_partial', 'collection_failed'] as const)(
    'is refused as %s when no provider collects',
    (event) => {
      expect(faultOf(() => command(settlementOf('internal'), { event }))).toBe('event');
    },
  );

  test('is an answer about a payout only while one waits for an answer', () => {
    const refused = SETTLEMENT_STATUSES.filter(
      (status) =>
        faultOf(() => command(settlementOf('card', status), { event: 'payout_confirmed' })) === 'state_conflict',
    );
    expect(SETTLEMENT_STATUSES.filter((status) => !refused.includes(status))).toEqual(['paying_out', 'needs_review']);
  });

  test.each([
    ['collection_succeeded', undefined, 0n, 0n, 25_000n],
    ['collection_succeeded', undefined, 10_000n, 0n, 15_000n],
    ['collection_succeeded', undefined, 0n, 10_000n, 15_000n],
    ['collection_succeeded', undefined, 5_000n, 10_000n, 10_000n],
    ['collection_succeeded', undefined, 25_000n, 0n, 25_000n],
    ['collection_succeeded', '260', 0n, 10_000n, 26_000n],
    ['collection_succeeded', '100000.00', 0n, 0n, 10_000_000n],
    ['collection_partial', undefined, 0n, 0n, 12_500n],
    ['collection_partial', undefined, 24_999n, 0n, 1n],
    ['collection_partial', '0.01', 0n, 0n, 1n],
    ['collection_failed', undefined, 0n, 0n, 0n],
    ['dispute_opened', undefined, 25_000n, 0n, 0n],
    ['dispute_opened', '20', 25_000n, 0n, 2_000n],
  ] as const)(
    '%s with amount %s, after %d was received and %d requested, has the amount %d',
    (event: SandboxEvent, amount, receivedMinor, underWayMinor, amountMinor) => {
      const settlement = { ...settlementOf('card'), amountReceivedMinor: receivedMinor };
      expect(command(settlement, { event, amount }, underWayMinor)).toEqual({ event, amountMinor });
    },
  );
});
