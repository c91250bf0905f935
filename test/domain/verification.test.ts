import { describe, expect, test } from 'vitest';
import type { Recipient } from '../../domain/recipient.ts';
import { verificationDetail, verificationResource } from '../../domain/resource/verification.ts';
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

const recipientOf = (overrides: Partial<Recipient> = {}): Recipient => ({
  recipientId: 'rec-1',
  orgId: 'org-1',
  kind: 'contractor',
  entityType: 'individual',
  name: 'Marcia Brown',
  country: 'JM',
  email: null,
  phone: null,
  bankDetails: null,
  mobileDetails: null,
  metadata: {},
  isActive: true,
  verificationStatus: 'unverified',
  createdAt: new Date('2026-11-01T00:00:00.000Z'),
  updatedAt: new Date('2026-11-01T00:00:00.000Z'),
  ...overrides,
});

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

describe('the table of verifications', () => {
  test('no move leaves a decided or expired one', () => {
    for (const from of ['verified', 'rejected', 'expired'] as const)
      for (const to of VERIFICATION_STATUSES) expect(canMoveVerification(from, to)).toBe(false);
  });

  test('nothing goes back to pending', () => {
    for (const from of VERIFICATION_STATUSES) expect(canMoveVerification(from, 'pending')).toBe(false);
  });

  test('each open state can be verified, rejected and expire', () => {
    for (const from of OPEN_VERIFICATION_STATUSES) {
      expect(isOpen(from)).toBe(true);
      for (const to of ['verified', 'rejected', 'expired'] as const) expect(canMoveVerification(from, to)).toBe(true);
    }
  });

  test('every state but the first is reached, and each move is told once', () => {
    expect(new Set(VERIFICATION_TRANSITIONS.map(({ to }) => to))).toEqual(new Set(VERIFICATION_STATUSES));
    expect(new Set(VERIFICATION_TRANSITIONS.map(({ from, to }) => `${from}>${to}`)).size).toBe(
      VERIFICATION_TRANSITIONS.length,
    );
  });
});

describe('a verification as it is opened', () => {
  test('stays open for thirty days', () => {
    expect(opened().expiresAt.toISOString()).toBe('2026-12-01T00:00:00.000Z');
  });

  test('is of a person or of a business, by the recipient', () => {
    expect(defaultVerificationType('individual')).toBe('kyc');
    expect(defaultVerificationType('business')).toBe('kyb');
  });
});

describe('what becomes of the recipient', () => {
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

  test('a name that was not looked at is not verified', () => {
    expect(statusAfter('verified', { name: 'Somebody Else' })).toBe('unverified');
  });

  test('it follows what is opened and decided', () => {
    expect(statusAfter('pending', { verificationStatus: 'verified' })).toBe('pending');
    expect(statusAfter('verified')).toBe('verified');
    expect(statusAfter('rejected', { verificationStatus: 'verified' })).toBe('rejected');
    expect(statusAfter('in_review')).toBe('pending');
  });

  test('expiry takes nothing away that another verification gave or may still give', () => {
    expect(statusAfter('expired', { verificationStatus: 'verified' })).toBe('verified');
    expect(statusAfter('expired', {}, true)).toBe('pending');
    expect(statusAfter('expired')).toBe('expired');
  });
});

describe('the same decision', () => {
  const verified = { ...opened(), status: 'verified' as const, verifiedName: 'Marcia A. Brown' };

  test('is not another status, another name, another reason', () => {
    expect(isSameDecision(verified, { to: 'rejected', rejectionReason: 'no' })).toBe(false);
    expect(isSameDecision(verified, { to: 'verified', verifiedName: 'Marcia B. Brown' })).toBe(false);
    expect(
      isSameDecision(
        { ...opened(), status: 'rejected', rejectionReason: 'yes' },
        { to: 'rejected', rejectionReason: 'no' },
      ),
    ).toBe(false);
  });

  test('may leave the name out', () => {
    expect(isSameDecision(verified, { to: 'verified', verifiedName: null })).toBe(true);
    expect(isSameDecision(verified, { to: 'verified', verifiedName: 'Marcia A. Brown' })).toBe(true);
  });
});

test('no name is in what events carry; the answer has the verified one', () => {
  const verified = { ...opened('Marcia Secretname'), status: 'verified' as const, verifiedName: 'Marcia Secretname' };
  expect(JSON.stringify(verificationResource(verified))).not.toContain('Secretname');
  expect(new Set(Object.keys(verificationDetail(verified)))).toEqual(
    new Set([
      'verification_id',
      'recipient_id',
      'org_id',
      'verification_type',
      'document_type',
      'document_country',
      'status',
      'provider',
      'applicant_id',
      'verified_name',
      'rejection_reason',
      'created_at',
      'decided_at',
      'expires_at',
      'workflow_id',
    ]),
  );
});
