import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  CERTIFICATE_ID_PATTERN,
  type CertificateFacts,
  certificateContent,
  certificateId,
  isLedgerConfirmed,
  type StepPosting,
} from '../../domain/certificate.ts';
import type { Account } from '../../domain/settlement/posting.ts';
import { certificateFacts } from '../support/certificate.ts';
import { property } from '../support/property.ts';
import { words } from '../support/words.ts';

const line = (step: string, account: Account, amountMinor: bigint): StepPosting => ({
  step,
  account,
  currency: 'USD',
  amountMinor,
});
const certify = (postings: readonly StepPosting[]) => certificateContent(certificateFacts({ postings })).postings;

describe('a certificate is refused', () => {
  test.each([
    ['a settlement without history', []],
    ['a settlement that is still paying out', certificateFacts().transitions.slice(0, -1)],
  ] as const)('%s is not certified', (_name, transitions) => {
    expect(() => certificateContent(certificateFacts({ transitions }))).toThrow('has not settled');
  });
});

describe('the content', () => {
  test('has exactly the fields of the contract', () => {
    expect(new Set(Object.keys(certificateContent(certificateFacts())))).toEqual(
      new Set(
        words(`
        schema_version settlement_id org_id corridor amounts fees rate payment_method payout_rail parties timeline
        evidence postings environment simulation anchor
      `),
      ),
    );
  });

  test('names the recipient by its id, and the payee by a digest', () => {
    const facts = certificateFacts();
    expect(certificateContent(facts).parties).toEqual({
      recipient_id: facts.settlement.recipientId,
      payee_sha256: facts.settlement.payeeSha256,
    });
  });

  test('has nothing that people wrote: references, metadata, purpose and the reasons of transitions', () => {
    const { settlement, transitions, postings, ...rest } = certificateFacts();
    const facts: CertificateFacts = {
      ...rest,
      settlement: { ...settlement, reference: 'WRITTEN', metadata: { note: 'WRITTEN' }, purpose: 'rent' },
      transitions: transitions.map((transition) => ({ ...transition, reason: 'WRITTEN' })),
      postings: [...postings, line('refund:WRITTEN', 'refund_due', 5n), line('refund:WRITTEN', 'bank_clearing', -5n)],
    };
    expect(JSON.stringify(certificateContent(facts))).not.toMatch(/WRITTEN|rent|note/);
  });

  test('has no JSON number, so that no reader can round one', () => {
    JSON.parse(JSON.stringify(certificateContent(certificateFacts())), (_name, value: unknown) => {
      expect(typeof value).not.toBe('number');
      return value;
    });
  });

  test('says that it is a simulation and not anchored', () => {
    expect(certificateContent(certificateFacts())).toMatchObject({
      simulation: true,
      anchor: { status: 'unanchored' },
      environment: 'local sandbox',
    });
  });

  test('does not change when the settlement changes after it settled', () => {
    const facts = certificateFacts();
    const later = {
      ...facts.settlement,
      updatedAt: new Date(),
      certificateId: certificateId('ab'.repeat(32)),
      clockOffsetMs: 60_000,
    };
    expect(certificateContent({ ...facts, settlement: later })).toEqual(certificateContent(facts));
  });
});

test('the id is CERT- and the first 32 upper-case digits of the digest', () => {
  expect(certificateId('0123456789abcdef0123456789abcdef'.padEnd(64, 'f'))).toBe(
    'CERT-0123456789ABCDEF0123456789ABCDEF',
  );
  expect(certificateId('ab'.repeat(32))).toMatch(CERTIFICATE_ID_PATTERN);
});

describe('the ledger is not confirmed', () => {
  const set = [line('settled', 'payout_in_transit', 500n), line('settled', 'fx_position', -500n)];

  test.each([
    ['when the journal does not sum to zero', [...set, line('late', 'refund_due', 1n)]],
    ['when a certified step is missing', []],
    ['when a certified step lost a line', set.slice(1)],
    [
      'when a certified step gained lines',
      [...set, line('settled', 'refund_due', 5n), line('settled', 'bank_clearing', -5n)],
    ],
    [
      'when an amount changed, though the set balances',
      [line('settled', 'payout_in_transit', 501n), line('settled', 'fx_position', -501n)],
    ],
    ['when an account changed', [line('settled', 'payout_paid', 500n), line('settled', 'fx_position', -500n)]],
    ['when a currency changed', set.map((posting) => ({ ...posting, currency: 'JMD' as const }))],
    ['when the order of the lines changed', [...set].reverse()],
  ])('%s', (_name, journal) => {
    expect(isLedgerConfirmed(certify(set), journal)).toBe(false);
  });

  test('one currency that balances another', () => {
    const crossed = [
      line('settled', 'payout_in_transit', 500n),
      { ...line('settled', 'fx_position', -500n), currency: 'CAD' as const },
    ];
    expect(isLedgerConfirmed(certify(crossed), crossed)).toBe(false);
  });
});

describe('the ledger is confirmed', () => {
  test('the journal that was certified', () => {
    const { postings } = certificateFacts();
    expect(isLedgerConfirmed(certify(postings), postings)).toBe(true);
  });

  property([fc.bigInt({ min: 1n, max: 10n ** 12n })])('by a journal with a later balanced step', (amountMinor) => {
    const { postings } = certificateFacts();
    const late = [line('surplus:late', 'card_clearing', amountMinor), line('surplus:late', 'refund_due', -amountMinor)];
    expect(isLedgerConfirmed(certify(postings), [...postings, ...late])).toBe(true);
  });
});
