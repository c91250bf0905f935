/** What the payer, the payer's bank and the operators do with money. Each becomes evidence or a refund. */
import type { EvidenceKind } from '../../domain/settlement/evidence.ts';
import { isTerminal, UNFUNDED_STATUSES } from '../../domain/settlement/state.ts';
import { arrivedMinor, placesOf, withPayment, withTaking } from './bank.ts';
import { type Clock, EXACT, type Move, newEvidence, outside, playedBy } from './move.ts';
import { ask } from './shell.ts';
import type { Payment, Situation } from './situation.ts';

/** In percent of the settlement's amount. */
const PAYMENTS = {
  part: { percent: 40n, words: 'Two fifths of the amount arrive' },
  rest: { percent: 60n, words: 'Three fifths of the amount arrive' },
  exact: { percent: 100n, words: 'The exact amount arrives' },
  excess: { percent: 120n, words: 'Six fifths of the amount arrive' },
} as const;
export type PaymentKind = keyof typeof PAYMENTS;

const FOREIGN = 'CAD';
const HUNDRED = 100n;

const BANK_CODE = { code: 'R01', message: 'The bank has returned the payment.' };

const nextId = ({ evidence }: Situation): string => `e${evidence.length + 1}`;

export const payments = (kinds: readonly PaymentKind[], max: number, clocks: readonly Clock[]): readonly Move[] =>
  kinds.flatMap((kind) =>
    outside(
      clocks,
      PAYMENTS[kind].words,
      ({ bank }) => bank.payments.length < max,
      (situation) => {
        const { amountMinor: wholeMinor, sourceCurrency: currency } = situation.settlement;
        const evidenceId = nextId(situation);
        const amountMinor = (wholeMinor * PAYMENTS[kind].percent) / HUNDRED;
        return {
          situation: { ...situation, bank: withPayment(situation.bank, { evidenceId, amountMinor, isTaken: false }) },
          happening: {
            type: 'evidence',
            evidence: newEvidence(evidenceId, { kind: 'collection_succeeded', amountMinor, currency }),
          },
        };
      },
    ),
  );

/** Events that move no money of the settlement, whenever they come. */
const INERT = [
  { words: 'Money in another currency arrives', kind: 'collection_succeeded', amountMinor: 100n, currency: FOREIGN },
  { words: 'Money in another currency is returned', kind: 'collection_returned', amountMinor: 100n, currency: FOREIGN },
  { words: 'An event of amount 0 arrives', kind: 'collection_succeeded', amountMinor: 0n, currency: 'USD' },
  { words: 'A dispute is closed', kind: 'dispute_closed', amountMinor: null, currency: null },
] as const;

export const inertEvents: readonly Move[] = INERT.flatMap(({ words, ...says }) =>
  outside(
    [EXACT],
    words,
    () => true,
    (situation) => ({ situation, happening: { type: 'evidence', evidence: newEvidence(nextId(situation), says) } }),
  ),
);

const TAKINGS = {
  return: { words: 'Payment # is returned', kind: 'collection_returned', divisor: 1n, isNamed: true },
  'unnamed return': {
    words: 'Payment # is returned, and no amount is named',
    kind: 'collection_returned',
    divisor: 1n,
    isNamed: false,
  },
  dispute: { words: 'Payment # is disputed', kind: 'dispute_opened', divisor: 1n, isNamed: true },
  'partial dispute': { words: 'Half of payment # is disputed', kind: 'dispute_opened', divisor: 2n, isNamed: true },
} as const satisfies Record<
  string,
  { readonly words: string; readonly kind: EvidenceKind; readonly divisor: bigint; readonly isNamed: boolean }
>;
export type Taking = keyof typeof TAKINGS;

/** Each payment is taken back at most once. Without an amount, the evidence means all that arrived. */
export const takings = (names: readonly Taking[], paymentsMax: number, clocks: readonly Clock[]): readonly Move[] =>
  names.flatMap((name) => {
    const { kind, divisor, isNamed, words } = TAKINGS[name];
    const isPossible = (payment: Payment | undefined, { bank }: Situation): boolean =>
      payment !== undefined && !payment.isTaken && (isNamed || bank.payments.length === 1);
    return Array.from({ length: paymentsMax }, (_, index) =>
      outside(
        clocks,
        words.replace('#', String(index + 1)),
        (situation) => isPossible(situation.bank.payments[index], situation),
        (situation) => {
          const payment = situation.bank.payments[index];
          const amountMinor = (payment?.amountMinor ?? 0n) / divisor;
          const currency = situation.settlement.sourceCurrency;
          const says = isNamed ? { kind, amountMinor, currency } : { kind };
          return {
            situation: { ...situation, bank: withTaking(situation, index, amountMinor) },
            happening: { type: 'evidence', evidence: newEvidence(nextId(situation), says) },
          };
        },
      ),
    ).flat();
  });

/** The provider says that the payer's payment failed; no money moved. */
export const failedCollection = (clocks: readonly Clock[]): readonly Move[] =>
  outside(
    clocks,
    'The provider says that the collection failed',
    ({ bank }) => !bank.isFailureReported,
    (situation) => ({
      situation: { ...situation, bank: { ...situation.bank, isFailureReported: true } },
      happening: { type: 'evidence', evidence: newEvidence(nextId(situation), { kind: 'collection_failed' }) },
    }),
  );

/** The bank reports a payment that never arrived, or one that it has taken back already. No money moves. */
export const strayReturn = (clocks: readonly Clock[]): readonly Move[] =>
  outside(
    clocks,
    'The bank returns a payment that is not here',
    (situation) =>
      arrivedMinor(situation) === 0n && (isTerminal(situation.settlement.status) || !situation.bank.isFailureReported),
    (situation) => {
      const { bank, settlement } = situation;
      const { status, amountMinor, sourceCurrency: currency } = settlement;
      const isFailureReported = bank.isFailureReported || UNFUNDED_STATUSES.includes(status);
      const says = { kind: 'collection_returned', amountMinor, currency, failure: BANK_CODE } as const;
      return {
        situation: { ...situation, bank: { ...bank, isFailureReported } },
        happening: { type: 'evidence', evidence: newEvidence(nextId(situation), says) },
      };
    },
  );

/** Operators give back what is due, all or half of it, and record it. More than that is refused, so it is not given. */
export const refunds = (max: number, clocks: readonly Clock[]): readonly Move[] =>
  [
    { words: 'Operators record that all that is due was given back', of: (dueMinor: bigint) => dueMinor },
    { words: 'Operators record that half of what is due was given back', of: (dueMinor: bigint) => dueMinor / 2n },
    { words: 'Operators record a cent more than is due', of: (dueMinor: bigint) => dueMinor + 1n },
  ].flatMap(({ words, of }) =>
    clocks.map(
      (clock): Move => ({
        words: words + clock.words,
        aheadMs: clock.aheadMs,
        isPossible: (situation) => situation.refunds.length < max && of(placesOf(situation).dueMinor) > 0n,
        play: (situation, fixture) => {
          const amountMinor = of(placesOf(situation).dueMinor);
          const refund = { reference: `transfer ${situation.refunds.length + 1}`, amountMinor };
          const asked = ask(fixture, situation, { type: 'refund', ...refund }, situation.now + clock.aheadMs);
          if ('refusal' in asked.decision) return playedBy(asked);
          const { bank } = asked.after;
          const given = { ...bank, balanceMinor: bank.balanceMinor - amountMinor };
          return { situation: { ...asked.after, bank: given, refunds: [...asked.after.refunds, refund] }, asked };
        },
      }),
    ),
  );
