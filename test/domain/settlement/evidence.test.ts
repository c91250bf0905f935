/** What new evidence does in each state (contract §6). */
import { describe, expect, test } from 'vitest';
import {
  EVIDENCE_KINDS,
  type Evidence,
  type EvidenceKind,
  type Reception,
  receive,
  surplusOf,
} from '../../../domain/settlement/evidence.ts';
import { fundingOutcome } from '../../../domain/settlement/funding.ts';
import {
  isTerminal,
  PAYOUT_STATUSES,
  SETTLEMENT_STATUSES,
  type Settlement,
  type SettlementStatus,
  UNFUNDED_STATUSES,
} from '../../../domain/settlement/state.ts';
import { certificateFacts } from '../../support/certificate.ts';

const piece = (kind: EvidenceKind, change: Partial<Evidence> = {}): Evidence => ({
  evidenceId: 'evidence-1',
  kind,
  amountMinor: kind === 'collection_succeeded' ? 100n : null,
  currency: kind === 'collection_succeeded' ? 'USD' : null,
  failure: null,
  ...change,
});

/** A settlement of 1.00 in this state; nothing has come in unless it says so. */
const inState = (status: SettlementStatus, change: Partial<Settlement> = {}): Settlement => ({
  ...certificateFacts().settlement,
  status,
  amountMinor: 100n,
  amountReceivedMinor: 0n,
  ...change,
});

const NOTHING: Reception = {
  pending: false,
  exception: null,
  exceptionMinor: null,
  heldMinor: 0n,
  dueBackMinor: 0n,
  reversedMinor: 0n,
  takenBackMinor: 0n,
};

describe('a collection', () => {
  test.each(SETTLEMENT_STATUSES)('is recorded and never counted if its currency is another, in %s', (status) => {
    for (const currency of ['CAD', null])
      expect(receive(inState(status), piece('collection_succeeded', { currency }))).toEqual({
        ...NOTHING,
        exception: 'currency_mismatch',
        exceptionMinor: 100n,
      });
  });

  test.each(SETTLEMENT_STATUSES)('changes nothing if its amount is 0, in %s', (status) => {
    expect(receive(inState(status), piece('collection_succeeded', { amountMinor: 0n }))).toEqual(NOTHING);
  });

  test.each(SETTLEMENT_STATUSES)('is held before the settlement is funded, and due back from then on: %s', (status) => {
    const held = { ...NOTHING, heldMinor: 100n };
    const exception = isTerminal(status) ? 'late_evidence' : 'overpaid';
    const dueBack = { ...NOTHING, exception, exceptionMinor: 100n, dueBackMinor: 100n };
    const settlement = inState(status, { amountReceivedMinor: UNFUNDED_STATUSES.includes(status) ? 0n : 100n });
    expect(receive(settlement, piece('collection_succeeded'))).toEqual(
      UNFUNDED_STATUSES.includes(status) ? held : dueBack,
    );
  });

  test.each(['paying_out', 'needs_review', 'settled', 'canceled'] as const)(
    'makes up, in %s, for what was taken back before, and only the rest is due back',
    (status) => {
      const settlement = inState(status, { amountReceivedMinor: 150n, amountRefundedMinor: 50n, takenBackMinor: 70n });
      const exception = isTerminal(status) ? 'late_evidence' : 'overpaid';
      const filled = { ...NOTHING, exception, exceptionMinor: 100n, dueBackMinor: 30n, takenBackMinor: -70n };
      expect(receive(settlement, piece('collection_succeeded'))).toEqual(filled);
    },
  );

  test('fills, in funded, what the bank took back there, and the rest is due back', () => {
    const settlement = inState('funded', { amountReceivedMinor: 80n });
    expect(receive(settlement, piece('collection_succeeded'))).toEqual({
      ...NOTHING,
      exception: 'overpaid',
      exceptionMinor: 80n,
      heldMinor: 20n,
      dueBackMinor: 80n,
    });
  });
});

describe('a failure of the collection', () => {
  test.each(SETTLEMENT_STATUSES)('decides only while the amount is not covered: %s', (status) => {
    const failed = piece('collection_failed');
    const late = { ...NOTHING, exception: 'late_evidence' };
    const pending = UNFUNDED_STATUSES.includes(status);
    expect(receive(inState(status), failed)).toEqual(isTerminal(status) ? late : { ...NOTHING, pending });
    if (pending) expect(receive(inState(status, { amountReceivedMinor: 100n }), failed)).toEqual(NOTHING);
  });
});

describe('a return of a payment', () => {
  test.each(UNFUNDED_STATUSES)('is a failure if the payment was never counted, in %s', (status) => {
    expect(receive(inState(status), piece('collection_returned'))).toEqual({ ...NOTHING, pending: true });
  });

  test.each([...UNFUNDED_STATUSES, 'funded' as const])(
    'takes counted money back, and ends the settlement: %s',
    (status) => {
      const settlement = inState(status, { amountReceivedMinor: 130n });
      const returned = { ...NOTHING, exception: 'returned', pending: true };
      for (const [amountMinor, named, taken] of [
        [null, 130n, 130n],
        [0n, 130n, 130n],
        [30n, 30n, 30n],
        [500n, 500n, 130n],
      ] as const)
        expect(receive(settlement, piece('collection_returned', { amountMinor, currency: 'USD' }))).toEqual({
          ...returned,
          exceptionMinor: named,
          reversedMinor: taken,
        });
    },
  );

  test.each(SETTLEMENT_STATUSES)(
    'takes nothing back and decides nothing if its currency is another, in %s',
    (status) => {
      for (const amountReceivedMinor of [0n, 100n]) {
        const settlement = inState(status, { amountReceivedMinor });
        expect(receive(settlement, piece('collection_returned', { amountMinor: 100n, currency: 'CAD' }))).toEqual({
          ...NOTHING,
          exception: 'returned',
          exceptionMinor: 100n,
        });
      }
    },
  );

  test.each(PAYOUT_STATUSES)('takes back, in %s, what is due back, and notes the rest', (status) => {
    const settlement = inState(status, { amountReceivedMinor: 130n });
    expect(receive(settlement, piece('collection_returned'))).toEqual({
      ...NOTHING,
      exception: 'returned',
      exceptionMinor: 130n,
      reversedMinor: 30n,
      takenBackMinor: 100n,
    });
  });

  test('takes back, after the end, what is due back, notes what was given back already, and names all of it', () => {
    const settlement = inState('canceled', { amountReceivedMinor: 130n, amountRefundedMinor: 50n });
    const returned = {
      ...NOTHING,
      exception: 'returned',
      exceptionMinor: 130n,
      reversedMinor: 80n,
      takenBackMinor: 50n,
    };
    expect(receive(settlement, piece('collection_returned', { amountMinor: 130n, currency: 'USD' }))).toEqual(returned);
    expect(receive(settlement, piece('collection_returned'))).toEqual(returned);
  });

  test.each(SETTLEMENT_STATUSES.filter(isTerminal))(
    'is named with its amount, and never as late money, although nothing of it was counted: %s',
    (status) => {
      // What is paid out was counted, and was taken back before.
      const settlement = inState(
        status,
        status === 'settled' ? { amountReceivedMinor: 100n, takenBackMinor: 100n } : {},
      );
      expect(receive(settlement, piece('collection_returned', { amountMinor: 130n, currency: 'USD' }))).toEqual({
        ...NOTHING,
        exception: 'returned',
        exceptionMinor: 130n,
      });
    },
  );
});

describe('a dispute', () => {
  test('takes counted money back as a return does', () => {
    const settlement = inState('awaiting_funds', { amountReceivedMinor: 100n });
    const { exception: _returned, ...rest } = receive(settlement, piece('collection_returned'));
    expect(receive(settlement, piece('dispute_opened'))).toEqual({ ...rest, exception: 'disputed' });
  });

  test.each(SETTLEMENT_STATUSES)('changes nothing when it is closed, in %s', (status) => {
    expect(receive(inState(status, { amountReceivedMinor: 100n }), piece('dispute_closed'))).toEqual(NOTHING);
  });

  test.each(UNFUNDED_STATUSES)('decides nothing if the payment was never counted, in %s', (status) => {
    expect(receive(inState(status), piece('dispute_opened'))).toEqual({ ...NOTHING, exception: 'disputed' });
  });
});

describe("the payout rail's answer", () => {
  test.each(SETTLEMENT_STATUSES)('decides until the settlement has ended: %s', (status) => {
    for (const kind of ['payout_confirmed', 'payout_refused'] as const)
      expect(receive(inState(status), piece(kind))).toEqual(
        isTerminal(status) ? { ...NOTHING, exception: 'late_evidence' } : { ...NOTHING, pending: true },
      );
  });
});

test.each(SETTLEMENT_STATUSES.filter(isTerminal))('no evidence waits for a decision in %s', (status) => {
  for (const kind of EVIDENCE_KINDS)
    for (const amountReceivedMinor of [0n, 100n, 130n])
      expect(receive(inState(status, { amountReceivedMinor }), piece(kind)).pending).toBe(false);
});

describe('what decides before the payout', () => {
  const recorded = (kind: EvidenceKind, change: object = {}) => ({
    ...piece(kind),
    provider: 'cardproc' as const,
    eventId: 'event-1',
    pending: true,
    reversedMinor: 0n,
    ...change,
  });
  const failure = { code: 'R01', message: 'Insufficient funds.' };

  test('is the money, exactly when it covers the amount', () => {
    for (const amountReceivedMinor of [0n, 99n, 100n, 101n])
      expect(fundingOutcome({ amountMinor: 100n, amountReceivedMinor }, [])).toEqual(
        amountReceivedMinor >= 100n ? { to: 'funded' } : undefined,
      );
  });

  test.each([
    [recorded('collection_failed', { failure }), 'R01'],
    [recorded('collection_failed'), 'collection_failed'],
    [recorded('collection_returned', { failure }), 'R01'],
    [recorded('collection_returned', { failure, reversedMinor: 100n }), 'payment_returned'],
    [recorded('dispute_opened', { reversedMinor: 100n }), 'payment_disputed'],
  ])('is pending evidence before any money: %o fails with %s', (evidence, code) => {
    for (const amountReceivedMinor of [0n, 100n])
      expect(fundingOutcome({ amountMinor: 100n, amountReceivedMinor }, [evidence])).toMatchObject({
        to: 'failed',
        failure: { code },
        evidenceId: 'evidence-1',
      });
    expect(
      fundingOutcome({ amountMinor: 100n, amountReceivedMinor: 0n }, [{ ...evidence, pending: false }]),
    ).toBeUndefined();
  });

  test("is never the payout rail's answer", () => {
    const answers = [recorded('payout_confirmed'), recorded('payout_refused')];
    expect(fundingOutcome({ amountMinor: 100n, amountReceivedMinor: 0n }, answers)).toBeUndefined();
  });
});

test('a surplus names each collection that exceeded the amount, with what it exceeded by', () => {
  const collections = [60n, 60n, 0n, 25n].map((amountMinor, index) =>
    piece('collection_succeeded', { evidenceId: `evidence-${index}`, amountMinor }),
  );
  const other = piece('collection_succeeded', { currency: 'CAD' });
  const found = surplusOf({ amountMinor: 100n, sourceCurrency: 'USD' }, [other, ...collections]);
  expect(found.map(({ collection, surplusMinor }) => [collection.evidenceId, surplusMinor])).toEqual([
    ['evidence-1', 20n],
    ['evidence-3', 25n],
  ]);
});
