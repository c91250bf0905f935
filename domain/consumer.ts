/**
 * A consumer (contract §12): a person who proved a contact. Each consumer is an organization of its own, so that one
 * rule decides who owns an object.
 */
import type { Organization } from './organization.ts';
import type { Channel } from './otp.ts';
import { TIER_QUOTAS } from './quota.ts';
import type { EnvironmentName } from './runtime.ts';

export type Consumer = {
  /** Also the id of its organization. */
  readonly consumerId: string;
  /** The kind of the contact that was proved. */
  readonly channel: Channel;
  /** The contact's address. */
  readonly contactSealed: string;
  readonly environment: EnvironmentName;
  readonly createdAt: Date;
};

/** By which a consumer is found: its contact's hash under the pepper with this id. */
export type ContactHash = { readonly pepperId: string; readonly hash: Buffer };

/** What a sealed contact is bound to. It does not open for another consumer. */
export const consumerContactBinding = (consumerId: string): string => `consumer.contact:${consumerId}`;

export type ConsumerSession = {
  readonly sessionId: string;
  readonly consumerId: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
};

export const SESSION_VALIDITY_MS = 12 * 60 * 60_000;

const TIER = 'starter';

/** The longest list in the consumer API, which has no pages: as many recipients as a consumer may have. */
export const CONSUMER_LIST_MAX = TIER_QUOTAS[TIER].recipients;

/** ISO 3166-1 leaves this code to its users. Here it means that the country is not known. */
const NO_COUNTRY = 'ZZ';

/** The consumer's organization. It has no personal data: only the consumer's own row has the contact, sealed. */
export const consumerOrganization = ({ consumerId, environment, createdAt }: Consumer): Organization => ({
  orgId: consumerId,
  kind: 'consumer',
  name: 'Consumer',
  country: NO_COUNTRY,
  contactEmail: '',
  environment,
  createdAt,
  suspendedAt: null,
  tier: TIER,
  limits: {},
});
