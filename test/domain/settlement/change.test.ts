/** What new evidence changes, as data. */
import { expect, test } from 'vitest';
import { changeOf, withEvidence } from '../../../domain/settlement/change.ts';
import { certificateFacts } from '../../support/certificate.ts';

test('one payment that fills a gap and exceeds the amount is one settlement.funds_received', () => {
  const settlement = { ...certificateFacts().settlement, status: 'funded', amountReceivedMinor: 20_000n } as const;
  const change = withEvidence(changeOf({ settlement, exceptions: [] }, settlement.updatedAt), {
    evidenceId: 'evidence-1',
    provider: 'cardproc',
    eventId: 'event-1',
    kind: 'collection_succeeded',
    amountMinor: 8_000n,
    currency: 'USD',
    failure: null,
    sha256: '00'.repeat(32),
  });
  expect(change.after.amountReceivedMinor).toBe(28_000n);
  expect(change.postings.map(({ step, amountMinor }) => [step, amountMinor])).toEqual([
    ['collection:evidence-1', 5_000n],
    ['collection:evidence-1', -5_000n],
    ['surplus:evidence-1', 3_000n],
    ['surplus:evidence-1', -3_000n],
  ]);
  expect(change.events.map(({ type }) => type)).toEqual(['settlement.funds_received', 'settlement.exception']);
});
