/** What a decision changes, as data. */
import { describe, expect, test } from 'vitest';
import {
  changeOf,
  datedAfter,
  isSettling,
  withCertificate,
  withDecided,
  withEvidence,
  withMove,
  withNothingPending,
  withRefund,
} from '../../../domain/settlement/change.ts';
import type { EvidenceKind, NewEvidence, RecordedEvidence } from '../../../domain/settlement/evidence.ts';
import type { Settlement } from '../../../domain/settlement/state.ts';
import { certificateFacts } from '../../support/certificate.ts';

const settled = certificateFacts().settlement;
const later = (ms: number) => new Date(settled.updatedAt.getTime() + ms);
const begin = (change: Partial<Settlement> = {}, now = later(1_000), at = now) =>
  changeOf({ settlement: { ...settled, ...change }, exceptions: [] }, now, at);

const piece = (evidenceId: string, kind: EvidenceKind, change: Partial<NewEvidence> = {}): NewEvidence => ({
  evidenceId,
  provider: 'bankledger',
  eventId: `event of ${evidenceId}`,
  kind,
  amountMinor: null,
  currency: null,
  failure: null,
  sha256: '00'.repeat(32),
  ...change,
});
const pending = (evidenceId: string, kind: EvidenceKind, change: Partial<RecordedEvidence> = {}): RecordedEvidence => ({
  ...piece(evidenceId, kind),
  pending: true,
  reversedMinor: 0n,
  ...change,
});

test('a move that the table of transitions does not have is refused', () => {
  expect(() => withMove(begin(), { to: 'failed', reason: '' })).toThrow('no settlement moves from settled to failed');
});

describe('the date of a change', () => {
  test("is the latest of its own, of the run's time, of the last change and of what it acts on", () => {
    const dated = (nowMs: number, atMs: number) => begin({}, later(nowMs), later(atMs)).at;
    expect([dated(5, 9), dated(9, 5), dated(-9, -5)]).toEqual([later(9), later(9), later(0)]);
    expect(datedAfter(begin(), later(2_000)).at).toEqual(later(2_000));
    expect(datedAfter(begin(), later(0)).at).toEqual(later(1_000));
  });

  test('is that of the settlement after evidence that waits for a decision, and after a refund', () => {
    const waiting = begin({ status: 'awaiting_funds', amountReceivedMinor: 0n });
    expect(withEvidence(waiting, piece('failed', 'collection_failed')).after.updatedAt).toEqual(later(1_000));
    expect(withRefund(begin({ status: 'failed' }), 'back-1', 1n).after.updatedAt).toEqual(later(1_000));
  });
});

test('at the end, evidence that waits becomes an exception, unless it decided, is counted or took money back', () => {
  const known = [
    pending('counted', 'collection_succeeded', { pending: false, amountMinor: 100n, currency: 'USD' }),
    pending('decided', 'payout_refused'),
    pending('taken back', 'collection_returned', { reversedMinor: 100n }),
    pending('never came', 'collection_returned'),
    pending('late', 'payout_confirmed'),
  ];
  const ended = withNothingPending(withDecided(begin({ status: 'failed' }), 'decided'), known);
  expect(ended.decided).toEqual(['decided', 'taken back', 'never came', 'late']);
  expect(ended.exceptions.map(({ type, evidenceId }) => [type, evidenceId])).toEqual([
    ['returned', 'never came'],
    ['late_evidence', 'late'],
  ]);
});

test("an exception has the currency of its evidence, or the settlement's for what it took back, and the provider's code", () => {
  const exceptionOf = (evidence: NewEvidence) => withEvidence(begin({ status: 'failed' }), evidence).exceptions[0];
  const failure = { code: 'R01', message: 'Insufficient funds.' };
  expect(exceptionOf(piece('returned', 'collection_returned', { failure }))).toMatchObject({
    amountMinor: 25_000n,
    currency: 'USD',
    reason: 'R01',
  });
  expect(exceptionOf(piece('refused', 'payout_refused'))).toMatchObject({ currency: null, reason: null });
});

test('an event shows every exception of the settlement, also those of earlier changes', () => {
  const first = withEvidence(begin({ status: 'failed' }), piece('one', 'payout_refused'));
  const next = changeOf({ settlement: first.after, exceptions: first.exceptions }, later(2_000));
  const second = withEvidence(next, piece('two', 'payout_refused'));
  expect(second.events[0]?.exceptions.map(({ evidenceId }) => evidenceId)).toEqual(['one', 'two']);
});

test('a certificate is issued by the change that settles, and named by its events from then on', () => {
  const paid = withMove(withMove(begin({ status: 'funded' }), { to: 'paying_out', reason: '' }), {
    to: 'settled',
    reason: '',
  });
  expect([isSettling(paid), isSettling(withRefund(begin(), 'back-1', 1n))]).toEqual([true, false]);
  const certificate = { certId: 'CERT-1', content: '{}', sha256: '', signature: '' };
  const { events, after } = withCertificate(paid, certificate);
  expect(events.map(({ settlement }) => settlement.certificateId)).toEqual([null, 'CERT-1']);
  expect(after.certificateId).toBe('CERT-1');
});

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
