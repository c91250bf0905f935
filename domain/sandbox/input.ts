/** Inputs of the local sandbox that select an outcome (contract §6, §8). `scenario.ts` has the path of each one. */
import type { ReviewAnswer } from '../idverify.ts';

/** Words in a recipient's name. They make screening find a match, or decide what the simulated payout rail answers. */
export const SANDBOX_NAMES = {
  screeningHit: 'SANCTIONED',
  payoutRefused: 'PAYOUT REFUSED',
  payoutPending: 'PAYOUT PENDING',
} as const;

/** Words in a recipient's name that make the simulated identity provider decide by itself. */
export const SANDBOX_REVIEWS: Readonly<Record<string, ReviewAnswer>> = { 'KYC REJECT': 'RED', 'KYC APPROVE': 'GREEN' };

/** What the simulated identity provider decides about this name; undefined when a decision must be sent. */
export const sandboxReview = (name: string): ReviewAnswer | undefined =>
  Object.entries(SANDBOX_REVIEWS).find(([word]) => name.includes(word))?.[1];

/** Public tokens of the linked accounts that do not simply pay. Every other account pays. */
export const SANDBOX_ACCOUNTS = { returned: 'public-sandbox-return', manual: 'public-sandbox-manual' } as const;
