/** A recipient as the domain knows it, without the API and the database. */
import type { Recipient } from '../../domain/recipient.ts';

const AT = new Date('2026-11-01T00:00:00.000Z');

/** A person in Jamaica, active and unverified, without details. */
export const recipientOf = (overrides: Partial<Recipient> = {}): Recipient => ({
  recipientId: 'recipient-1',
  orgId: 'organization-1',
  kind: 'vendor',
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
  dataKeySealed: 'sealed',
  erasedAt: null,
  createdAt: AT,
  updatedAt: AT,
  ...overrides,
});
