/**
 * What a decision names, and how it is dated. Which state follows in which order is walked by test/explore/.
 */
import { describe, expect, test } from 'vitest';
import type { Recipient } from '../../../domain/recipient.ts';
import { decide } from '../../../domain/settlement/decide.ts';
import type { EvidenceKind, RecordedEvidence } from '../../../domain/settlement/evidence.ts';
import { decisionAboutPayee, type StepFacts } from '../../../domain/settlement/facts.ts';
import type { Settlement } from '../../../domain/settlement/state.ts';
import { certificateFacts } from '../../support/certificate.ts';

const { settlement: settled } = certificateFacts();
const NOW = new Date(settled.updatedAt.getTime() + 1_000);
const LATER = new Date(NOW.getTime() + 60_000);

const recorded = (
  evidenceId: string,
  kind: EvidenceKind,
  change: Partial<RecordedEvidence> = {},
): RecordedEvidence => ({
  evidenceId,
  provider: 'cardproc',
  eventId: `event of ${evidenceId}`,
  kind,
  amountMinor: null,
  currency: null,
  failure: null,
  pending: true,
  reversedMinor: 0n,
  ...change,
});
const money = (evidenceId: string, amountMinor: bigint) =>
  recorded(evidenceId, 'collection_succeeded', { amountMinor, currency: 'USD', pending: false });

const factsOf = (change: Partial<Settlement>, facts: Partial<StepFacts> = {}): StepFacts => ({
  settlement: { ...settled, ...change },
  exceptions: [],
  evidence: [],
  recipient: { isActive: true, updatedAt: settled.createdAt },
  isScreeningHit: false,
  verification: undefined,
  isGateClosed: false,
  isSimulated: false,
  internalFunding: undefined,
  resolution: undefined,
  ...facts,
});

function review(change: Partial<Settlement>, facts?: Partial<StepFacts>) {
  const decision = decide<'review'>(factsOf(change, facts), { type: 'review' }, NOW);
  if ('refusal' in decision) throw new Error('a review is never refused');
  return decision;
}

test('a closed gate rejects what is accepted, also where the recipient would have to be verified', () => {
  const large = { status: 'accepted', amountMinor: 100_000n, amountReceivedMinor: 0n } as const;
  const ends = (facts: Partial<StepFacts>) => review(large, facts).transitions.map(({ to, reason }) => [to, reason]);
  expect(ends({})).toEqual([['compliance_hold', 'verification_required']]);
  expect(ends({ isGateClosed: true })).toEqual([['rejected', 'launch_gates_closed']]);
});

describe('what decides is named by the transition, and waits no longer', () => {
  test('the payment with which the amount is covered exactly, and each later one as too much', () => {
    const evidence = [money('first', 10_000n), money('covers', 15_000n), money('more', 5_000n)];
    const { transitions, exceptions } = review(
      { status: 'awaiting_funds', amountReceivedMinor: 30_000n },
      { evidence },
    );
    expect(transitions).toMatchObject([{ to: 'funded', evidenceId: 'covers' }]);
    expect(exceptions).toMatchObject([{ type: 'overpaid', evidenceId: 'more', amountMinor: 5_000n }]);
  });

  test('the funding from inside, in the same change', () => {
    const internalFunding = { ...money('inside', settled.amountMinor), provider: 'internal', sha256: '' } as const;
    const { transitions } = review({ status: 'accepted', amountReceivedMinor: 0n }, { internalFunding });
    expect(transitions.map(({ to, evidenceId }) => [to, evidenceId])).toEqual([
      ['awaiting_funds', null],
      ['funded', 'inside'],
    ]);
  });

  test("an answer of the rail, also one with the id of another provider's event", () => {
    const answer = { ...recorded('answer', 'payout_confirmed'), provider: 'payout_rail', sha256: '' } as const;
    const known = { ...money('paid', settled.amountMinor), eventId: answer.eventId };
    const facts = factsOf({ status: 'paying_out', expiresAt: LATER }, { evidence: [known] });
    expect(decide<'rail_answered'>(facts, { type: 'rail_answered', answer }, NOW)).toMatchObject({
      transitions: [{ to: 'settled', evidenceId: 'answer' }],
    });
  });

  const failure = { code: 'R01', message: 'Insufficient funds.' };
  test.each([
    ['awaiting_funds', 'collection_failed', failure, 'failed', 'R01'],
    ['paying_out', 'payout_confirmed', null, 'settled', undefined],
    ['needs_review', 'payout_refused', failure, 'failed', 'R01'],
    ['paying_out', 'payout_refused', null, 'failed', 'payout_refused'],
  ] as const)('in %s %s with the failure %o: %s, %s', (status, kind, given, to, code) => {
    const amountReceivedMinor = status === 'awaiting_funds' ? 0n : settled.amountMinor;
    const evidence = [recorded('decides', kind, { failure: given })];
    const change = review({ status, amountReceivedMinor, expiresAt: LATER }, { evidence });
    expect(change.transitions).toMatchObject([{ to, evidenceId: 'decides' }]);
    expect([change.decided, change.exceptions, change.after.failure?.code]).toEqual([['decides'], [], code]);
  });
});

describe('a change is not dated before what it acts on:', () => {
  const inactive = { isActive: false, updatedAt: LATER };
  const verified = { to: 'verified', at: LATER } as const;
  const LARGE = { amountMinor: 100_000n, amountReceivedMinor: 0n };
  test.each([
    ['the end of a recipient', { status: 'accepted' }, { recipient: inactive }],
    ['a verification before the hold', { status: 'accepted', ...LARGE }, { verification: verified }],
    ['a verification in the hold', { status: 'compliance_hold', ...LARGE }, { verification: verified }],
    ['what operators have agreed on', { status: 'needs_review' }, { resolution: { outcome: 'paid', at: LATER } }],
  ] as const)('%s', (_what, change, facts) => {
    expect(review(change, facts).transitions.map(({ at }) => at)).toEqual([LATER]);
  });

  test('the end of a recipient whose payout was about to begin', () => {
    const facts = factsOf({ status: 'funded' }, { recipient: inactive });
    expect(decide<'begin_payout'>(facts, { type: 'begin_payout' }, NOW)).toMatchObject({
      transitions: [{ to: 'failed', at: LATER }],
    });
  });
});

describe('what verification says about the frozen payee', () => {
  const about = (to: 'verified' | 'rejected') => ({ to, at: LATER }) as const;
  const says = (verificationStatus: Recipient['verificationStatus'], name: string, known?: ReturnType<typeof about>) =>
    decisionAboutPayee('Marcia Brown', { name, verificationStatus, updatedAt: NOW }, known);

  test.each(['verified', 'rejected', 'pending', 'unverified'] as const)(
    'is the decision about the name, once the recipient has another one: %s',
    (status) => {
      expect(says(status, 'Marcia Campbell', about('rejected'))).toEqual(about('rejected'));
      expect(says(status, 'Marcia Campbell')).toBeUndefined();
    },
  );

  test('is the present status of a recipient with this name, dated by the decision where there is one', () => {
    expect(says('verified', 'Marcia Brown', about('verified'))).toEqual(about('verified'));
    expect(says('rejected', 'Marcia Brown', about('rejected'))).toEqual(about('rejected'));
    for (const to of ['verified', 'rejected'] as const) expect(says(to, 'Marcia Brown')).toEqual({ to, at: NOW });
    expect(says('pending', 'Marcia Brown', about('rejected'))).toBeUndefined();
  });
});
