import { describe, expect, test } from 'vitest';
import {
  canMoveVerification,
  defaultVerificationType,
  isOpen,
  isSameDecision,
  OPEN_VERIFICATION_STATUSES,
  openedVerification,
  recipientStatusAfter,
  VERIFICATION_STATUSES,
  VERIFICATION_TRANSITIONS,
} from '../../domain/verification.ts';
import { recipientOf } from '../support/recipient.ts';

const opened = (name = 'Marcia Brown') =>
  openedVerification(recipientOf({ name }), {
    verificationId: 'ver-1',
    verificationType: 'kyc',
    documentType: 'passport',
    documentCountry: 'JM',
    provider: 'manual_mock',
    levelName: null,
    givenContact: null,
    requestId: 'req-1',
    createdAt: new Date('2026-11-01T00:00:00.000Z'),
  });

test('the transitions are those of the contract: open states are decided or expire, and nothing else moves', () => {
  const moves = VERIFICATION_STATUSES.flatMap((from) =>
    VERIFICATION_STATUSES.filter((to) => canMoveVerification(from, to)).map((to) => `${from} → ${to}`),
  );
  const decided = ['verified', 'rejected', 'expired'];
  expect(new Set(moves)).toEqual(
    new Set([
      'pending → in_review',
      ...['pending', 'in_review'].flatMap((from) => decided.map((to) => `${from} → ${to}`)),
    ]),
  );
  expect(VERIFICATION_TRANSITIONS.filter(({ from }) => from !== null)).toHaveLength(moves.length);
  expect(VERIFICATION_STATUSES.filter(isOpen)).toEqual(OPEN_VERIFICATION_STATUSES);
});

describe('a new verification', () => {
  test('is by default of the type that the recipient needs: kyc for a person, kyb for a business', () => {
    expect(defaultVerificationType('individual')).toBe('kyc');
    expect(defaultVerificationType('business')).toBe('kyb');
  });
});

describe("the recipient's status", () => {
  const statusAfter = (
    status: ReturnType<typeof opened>['status'],
    recipient: Parameters<typeof recipientOf>[0] = {},
    othersOpen = false,
  ) =>
    recipientStatusAfter(
      recipientOf({ verificationStatus: 'pending', ...recipient }),
      { ...opened(), status },
      othersOpen,
    );

  test('is not verified for another name than the one that was checked', () => {
    expect(statusAfter('verified', { name: 'Somebody Else' })).toBe('unverified');
    expect(statusAfter('verified', { name: 'Somebody Else', verificationStatus: 'rejected' })).toBe('rejected');
    expect(statusAfter('verified', { name: 'Somebody Else' }, true)).toBe('pending');
  });

  test('follows each decision, and each opening but that of a verified recipient', () => {
    expect(statusAfter('pending', { verificationStatus: 'rejected' })).toBe('pending');
    expect(statusAfter('pending', { verificationStatus: 'verified' })).toBe('verified');
    expect(statusAfter('verified')).toBe('verified');
    expect(statusAfter('rejected', { verificationStatus: 'verified' })).toBe('rejected');
    expect(statusAfter('in_review')).toBe('pending');
  });

  test('does not lose by expiry what another verification gave or may still give', () => {
    expect(statusAfter('expired', { verificationStatus: 'verified' })).toBe('verified');
    expect(statusAfter('expired', {}, true)).toBe('pending');
    expect(statusAfter('expired')).toBe('expired');
  });
});

describe('the same decision', () => {
  const decided = { verifiedName: 'Marcia A. Brown', rejectionReason: 'seen' };
  const verified = { ...opened(), status: 'verified' as const, ...decided };
  const given = { to: 'verified', verifiedName: null, rejectionReason: null } as const;

  test('has no other status, no other name and no other reason', () => {
    expect(isSameDecision(verified, { ...given, to: 'rejected' })).toBe(false);
    expect(isSameDecision(verified, { ...given, verifiedName: 'Marcia B. Brown' })).toBe(false);
    expect(isSameDecision(verified, { ...given, rejectionReason: 'no' })).toBe(false);
  });

  test('may leave the name and the reason out', () => {
    expect(isSameDecision(verified, given)).toBe(true);
    expect(isSameDecision(verified, { ...given, verifiedName: 'Marcia A. Brown', rejectionReason: 'seen' })).toBe(true);
  });
});
