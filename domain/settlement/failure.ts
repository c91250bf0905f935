/** Why a settlement ends without being paid out (contract §6). If the provider gives a reason, that one is used. */
import type { Failure } from './state.ts';

export const FAILURES = {
  recipientInactive: { code: 'recipient_inactive', message: 'The recipient is no longer active.' },
  screeningHit: { code: 'screening_hit', message: 'The recipient was refused by screening.' },
  verificationRejected: { code: 'verification_rejected', message: "The recipient's verification was rejected." },
  verificationTimeout: { code: 'verification_timeout', message: 'The recipient was not verified in time.' },
  fundingTimeout: { code: 'funding_timeout', message: 'The money did not arrive in time.' },
  collectionFailed: { code: 'collection_failed', message: 'The provider reported that the collection failed.' },
  paymentReturned: { code: 'payment_returned', message: "The payer's bank took the payment back." },
  paymentDisputed: { code: 'payment_disputed', message: 'The payer disputed the payment.' },
  gateClosed: { code: 'launch_gates_closed', message: 'A launch gate was closed before value could move.' },
  payoutRefused: { code: 'payout_refused', message: 'The payout was refused.' },
} as const satisfies Record<string, Failure>;
