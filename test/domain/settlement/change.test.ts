/** What new evidence changes, as data. */
import { expect, test } from 'vitest';
import { changeOf, type SettlementChange, withEvidence, withMove } from '../../../domain/settlement/change.ts';
import type { EvidenceKind } from '../../../domain/settlement/evidence.ts';
import { refundDueMinor } from '../../../domain/settlement/posting.ts';
import type { Settlement } from '../../../domain/settlement/state.ts';
import { certificateFacts } from '../../support/certificate.ts';

const inState = (status: Settlement['status'], amountReceivedMinor: bigint): SettlementChange => {
  const settlement = { ...certificateFacts().settlement, status, amountReceivedMinor };
  return changeOf({ settlement, exceptions: [] }, settlement.updatedAt);
};

const said = (change: SettlementChange, kind: EvidenceKind, amountMinor: bigint): SettlementChange =>
  withEvidence(change, {
    evidenceId: 'evidence-1',
    provider: 'cardproc',
    eventId: 'event-1',
    kind,
    amountMinor,
    currency: 'USD',
    failure: null,
    sha256: '00'.repeat(32),
  });

test('one payment that fills a gap and exceeds the amount is one settlement.funds_received', () => {
  const change = said(inState('funded', 20_000n), 'collection_succeeded', 8_000n);
  expect(change.after.amountReceivedMinor).toBe(28_000n);
  expect(change.postings.map(({ step, amountMinor }) => [step, amountMinor])).toEqual([
    ['collection:evidence-1', 5_000n],
    ['collection:evidence-1', -5_000n],
    ['surplus:evidence-1', 3_000n],
    ['surplus:evidence-1', -3_000n],
  ]);
  expect(change.events.map(({ type }) => type)).toEqual(['settlement.funds_received', 'settlement.exception']);
});

const ORDERS: readonly (readonly EvidenceKind[])[] = [
  ['collection_succeeded', 'collection_succeeded', 'collection_returned'],
  ['collection_succeeded', 'collection_returned', 'collection_succeeded'],
  ['collection_returned', 'collection_succeeded', 'collection_succeeded'],
];

test.each(['paying_out', 'needs_review', 'settled'] as const)(
  'two payments and a return leave the same due back, received and named, in whatever order they come: %s',
  (status) => {
    const paid = inState(status, 25_000n);
    for (const order of ORDERS) {
      const change = order.reduce((latest, kind) => said(latest, kind, 25_000n), paid);
      expect([change.after.amountReceivedMinor, refundDueMinor(change.after)]).toEqual([50_000n, 25_000n]);
      expect(change.exceptions.map(({ type, amountMinor }) => [type, amountMinor]).toSorted()).toEqual(
        [
          ['returned', 25_000n],
          ...[1, 2].map(() => [status === 'settled' ? 'late_evidence' : 'overpaid', 25_000n]),
        ].toSorted(),
      );
    }
  },
);

test('a payout that fails deducts what was taken back meanwhile, as far as it was not given back', () => {
  const { after, ...change } = inState('paying_out', 30_000n);
  const refunded = { ...change, after: { ...after, amountRefundedMinor: 5_000n } };
  const failed = withMove(said(refunded, 'collection_returned', 30_000n), { to: 'failed', reason: 'payout_refused' });
  expect(failed.after).toMatchObject({ amountReceivedMinor: 5_000n, takenBackMinor: 5_000n });
  const paid = said(failed, 'collection_succeeded', 8_000n);
  expect([refundDueMinor(failed.after), refundDueMinor(paid.after)]).toEqual([0n, 3_000n]);
});
