/**
 * What a partner does about the failure of a settlement (contract §6): what the code means, whether the same order may
 * be tried again, and what to tell the payer. The guide `failures` is generated from it, and each failure links there.
 */
import type { FAILURES } from './settlement/failure.ts';

export type FailureHelp = {
  readonly meaning: string;
  /** Whether the same order may be sent again, with a new idempotency key. */
  readonly again: string;
  readonly payer: string;
};

type FailureCode = (typeof FAILURES)[keyof typeof FAILURES]['code'];

export const FAILURE_HELP: Record<FailureCode, FailureHelp> = {
  recipient_inactive: {
    meaning: 'The recipient was deactivated before the payout was sent.',
    again: 'No. Send a new order to an active recipient.',
    payer: 'The recipient can no longer be paid. What was collected is due back.',
  },
  screening_hit: {
    meaning: 'The name of the recipient was refused by screening. Nothing was paid out; what came in is due back.',
    again: 'No. The same name is refused again.',
    payer: 'The payment cannot be made. Do not say why: screening is confidential.',
  },
  verification_rejected: {
    meaning: 'A settlement of 1 000.00 or more needs a verified recipient, and the verification was rejected.',
    again: 'After the recipient has been verified under the same name.',
    payer: 'The recipient could not be verified. Nothing was paid out; what came in is due back.',
  },
  verification_timeout: {
    meaning: 'A settlement of 1 000.00 or more needs a verified recipient, and nobody decided within 7 days.',
    again: 'Yes, once the recipient is verified.',
    payer: 'The recipient was not verified in time. Nothing was paid out; what came in is due back.',
  },
  funding_timeout: {
    meaning: 'The amount did not arrive within the window: card 30 minutes, ACH 5 days, wire 10 days.',
    again: 'Yes.',
    payer: 'The payment did not arrive in time. What came in, or still comes, is due back.',
  },
  collection_failed: {
    meaning: 'The provider reported that the collection failed, and gave no code.',
    again: 'Yes, if possible by another payment method.',
    payer: 'The payment was not accepted. Use another card or account.',
  },
  payment_returned: {
    meaning:
      "The payer's bank took the payment back before the payout. The exceptions name the bank's code and the amount.",
    again: 'Only once the payer has cleared it with the bank, or pays by another method.',
    payer: 'Your bank took the payment back. Nothing was paid out.',
  },
  payment_disputed: {
    meaning: 'The payer disputed the payment before the payout.',
    again: 'No, unless the payer withdraws the dispute.',
    payer: 'You disputed the payment. Nothing was paid out.',
  },
  launch_gates_closed: {
    meaning: 'A launch gate was closed before value could move.',
    again: 'Once `GET /v2/launch-gates` shows the gate as open. Only operators open one.',
    payer: 'The payment cannot be made now. What was collected is due back.',
  },
  payout_refused: {
    meaning: 'The rail refused the payout, or operators found that it was refused.',
    again: "After the recipient's details were checked and corrected, or by another rail.",
    payer: 'The recipient could not be paid. What was collected is due back.',
  },
};

/** Codes of the providers, which are passed on. The list is theirs; these are usual. */
export const PROVIDER_FAILURE_HELP: Readonly<Record<string, FailureHelp>> = {
  card_declined: {
    meaning: "The payer's bank declined the card.",
    again: 'Yes, with another card. The same card is usually declined again.',
    payer: 'Your bank declined the card. Use another one, or ask your bank.',
  },
  R01: {
    meaning: "The ACH debit was returned: the payer's account has too little money.",
    again: 'Yes, once the account has the money.',
    payer: 'Your account had too little money. Add money, or pay from another account.',
  },
};

/** The section about every other code. */
export const OTHER_FAILURES = 'Other codes';

const GUIDE = '/docs/failures';
const KNOWN = { ...FAILURE_HELP, ...PROVIDER_FAILURE_HELP };

/** The id of a section of a guide, as links name it. */
export const sectionId = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^a-z0-9_]+/g, '-')
    .replaceAll(/^-|-$/g, '');

/** Where a failure code is explained, as a reference relative to the service's address. */
export const failureAddress = (code: string): string =>
  `${GUIDE}#${sectionId(Object.hasOwn(KNOWN, code) ? code : OTHER_FAILURES)}`;
