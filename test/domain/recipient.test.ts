import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CORRIDORS } from '../../domain/corridor.ts';
import {
  changedDetails,
  detailsFaults,
  isAbaRoutingNumber,
  lastFour,
  payoutFaults,
  verificationAfter,
} from '../../domain/recipient.ts';
import { property } from '../support/property.ts';
import { recipientOf } from '../support/recipient.ts';

const BANK = { bank_name: 'National Commercial Bank', account_number_last4: '6789', currency: 'JMD' };
const MOBILE = { provider: 'Lynk', phone_number: '+18765550123' };

describe('a routing number', () => {
  test.each(['021000021', '011401533', '091000019', '111000025', '026009593'])('%s is an ABA number', (text) =>
    expect(isAbaRoutingNumber(text)).toBe(true),
  );

  test.each(['', '000000000', '02100002', '0210000210', '021000022', '02100002a', ' 21000021', '０２１０００021'])(
    '%j is not an ABA number',
    (text) => expect(isAbaRoutingNumber(text)).toBe(false),
  );

  property([
    fc.constantFrom('021000021', '011401533', '091000019'),
    fc.nat({ max: 8 }),
    fc.integer({ min: 1, max: 9 }),
  ])('with one wrong digit is always refused', (text, position, by) => {
    const wrong = (Number(text[position]) + by) % 10;
    expect(isAbaRoutingNumber(`${text.slice(0, position)}${wrong}${text.slice(position + 1)}`)).toBe(false);
  });
});

describe('the details of a recipient', () => {
  test('are refused when there are none, and in the US with an invalid routing number', () => {
    expect(detailsFaults('JM', { bankDetails: null, mobileDetails: null })).toEqual([
      { field: null, rule: expect.stringContaining('bank_details') },
    ]);
    expect(
      detailsFaults('US', { bankDetails: { routing_number: '123456789' }, mobileDetails: null }).map(
        ({ field }) => field,
      ),
    ).toEqual(['bank_details.routing_number']);
  });

  test('are accepted with either kind; a routing number is checked in the US only', () => {
    for (const [country, bankDetails] of [
      ['JM', { routing_number: '123456789' }],
      ['US', {}],
      ['US', { routing_number: '021000021' }],
    ] as const) {
      expect(detailsFaults(country, { bankDetails, mobileDetails: null })).toEqual([]);
    }
    expect(detailsFaults('JM', { bankDetails: null, mobileDetails: MOBILE })).toEqual([]);
  });

  test('are checked as they are after a change', () => {
    const { account_number_last4: _last4, ...shown } = BANK;
    const bankDetails = { ...shown, account_number: '123456789' };
    const [both, one] = [
      { bankDetails, mobileDetails: MOBILE },
      { bankDetails, mobileDetails: null },
    ];
    expect(changedDetails('JM', both, { bankDetails: null })).toEqual({ bankDetails: null, mobileDetails: MOBILE });
    expect(changedDetails('JM', both, { mobileDetails: null })).toEqual(one);
    expect(() => changedDetails('JM', both, { bankDetails: null, mobileDetails: null })).toThrow('needs bank_details');
    expect(() => changedDetails('JM', one, { bankDetails: null })).toThrow('needs bank_details');
    expect(changedDetails('JM', one, { bankDetails: null, mobileDetails: MOBILE }).bankDetails).toBeNull();
    expect(changedDetails('JM', one, {})).toEqual(one);
  });
});

describe('the verification after a change', () => {
  test('is unverified when a verified recipient gets another name', () => {
    for (const verificationStatus of ['verified', 'rejected'] as const)
      expect(verificationAfter(recipientOf({ verificationStatus }), { name: 'Marcia Campbell' })).toBe('unverified');
  });

  test('stays the same for the same name, for other fields and in every other status', () => {
    const verified = recipientOf({ verificationStatus: 'verified' });
    expect(verificationAfter(verified, { name: 'Marcia Brown', email: 'new@acme.example' })).toBe('verified');
    expect(verificationAfter(verified, { bankDetails: null })).toBe('verified');
    for (const status of ['unverified', 'pending', 'expired'] as const) {
      expect(verificationAfter(recipientOf({ verificationStatus: status }), { name: 'Another' })).toBe(status);
    }
  });
});

describe('a payout', () => {
  const { 'US-JM': corridor } = CORRIDORS;

  test('is refused for a recipient in another country than the destination', () => {
    const abroad = recipientOf({ country: 'TT', bankDetails: BANK });
    expect(payoutFaults(abroad, corridor, 'bank_transfer').map(({ field }) => field)).toEqual(['recipient_id']);
  });

  test('is refused over a rail that the recipient has no details for; cash needs none', () => {
    const [byBank, byPhone] = [recipientOf({ bankDetails: BANK }), recipientOf({ mobileDetails: MOBILE })];
    expect(payoutFaults(byPhone, corridor, 'bank_transfer')).toHaveLength(1);
    expect(payoutFaults(byBank, corridor, 'mobile_money')).toHaveLength(1);
    expect(payoutFaults(byBank, corridor, 'cash_pickup')).toEqual([]);
    expect(payoutFaults(byBank, corridor, 'bank_transfer')).toEqual([]);
  });
});

describe('the resource of a recipient', () => {
  test('the last four characters of an account number', () => expect(lastFour('GB29NWBK60161331926819')).toBe('6819'));
});
