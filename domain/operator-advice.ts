/**
 * What an operator does next about an object, as a sentence. `npm run ops -- show` and Temporal UI say the same. A
 * command is written as it is typed; a section is one of docs/operations.md.
 */
import type { PaymentMethod } from './payment-method.ts';
import type { ReviewRequest } from './review.ts';
import type { SettlementStatus } from './settlement/state.ts';
import { WORKER_BUSY } from './task-queue.ts';
import type { VerificationStatus } from './verification.ts';
import type { DeliveryStatus, DisabledReason, WebhookStatus } from './webhook.ts';
import { promotionCommand, type UnservedQueue, unservedSentence } from './worker-version.ts';

/** Headings of docs/operations.md. */
export const RUNBOOK_SECTIONS = [
  'Why does a settlement wait?',
  'Reviews',
  'Money that is due back',
  'Lost runs',
  'Changing workflows',
  'Worker versions',
  'Payload encryption',
  'When the outbox grows',
  'Brakes',
  'Alerts',
  'Logs',
] as const;
export type RunbookSection = (typeof RUNBOOK_SECTIONS)[number];

/** The address of a section. `runbookUrl` is where operators read docs/operations.md. */
export const runbookAddress = (section: RunbookSection, runbookUrl: string): string =>
  `${runbookUrl}#${section
    .toLowerCase()
    .replaceAll(/[^\w -]/g, '')
    .replaceAll(' ', '-')}`;

/** A section in Markdown: a link if the address is known. */
export const runbookMarkdown = (section: RunbookSection, runbookUrl: string | undefined): string =>
  runbookUrl === undefined
    ? `docs/operations.md, "${section}"`
    : `[Runbook: ${section}](${runbookAddress(section, runbookUrl)})`;

export type Advice = {
  readonly say: string;
  /** Empty when there is nothing to type. */
  readonly command: string;
  /** Null when there is nothing to do. */
  readonly section: RunbookSection | null;
};

const ops = (rest: string): string => `npm run ops -- ${rest}`;
const act = (rest: string): string => ops(`${rest} --operator <name> --note <why>`);

const WAITS: RunbookSection = 'Why does a settlement wait?';

/** What operators have requested about a payout in review. */
export function reviewState({ outcome, requestedBy, confirmedBy, agreedAt, requestedAt }: ReviewRequest): string {
  if (agreedAt === null)
    return `requested: ${outcome}, by ${requestedBy} at ${requestedAt.toISOString()}, and not confirmed`;
  return `agreed: ${outcome}, by ${requestedBy}${confirmedBy === null ? '' : ` and ${confirmedBy}`}, and not carried out`;
}

/** What the advice about a settlement depends on. */
export type SettlementSituation = {
  readonly settlementId: string;
  readonly status: SettlementStatus;
  readonly recipientId: string;
  readonly paymentMethod: PaymentMethod;
  /** The end of its wait, as text; null if the wait has no end. */
  readonly until: string | null;
  /** Its wait ended, or what ends it came, longer ago than a timer or a signal may be late, and nothing has followed. */
  readonly isOverdue: boolean;
  /** What operators have requested, if it is in review; the workflow does not know it. */
  readonly review?: ReviewRequest | undefined;
  /** What is due back to the payer, as text, if anything is. It changes after the end, as no workflow sees. */
  readonly refundDue?: string | undefined;
  /** The rail says that it paid, as it may after operators have resolved the payout as refused. */
  readonly hasRailPaid?: boolean | undefined;
};

/** What the settlement waits for; null for a state that is left at once, or that is final. */
export function settlementWait(status: SettlementStatus, paymentMethod: PaymentMethod): string | null {
  switch (status) {
    case 'compliance_hold':
      return 'verification decision';
    case 'awaiting_funds':
      return `${paymentMethod} evidence`;
    case 'paying_out':
      return 'payout outcome';
    case 'needs_review':
      return 'operator review';
    case 'accepted':
    case 'funded':
    case 'settled':
    case 'rejected':
    case 'expired':
    case 'failed':
    case 'canceled':
      return null;
  }
}

export function settlementAdvice(situation: SettlementSituation): Advice {
  const { settlementId: id, status, recipientId, until } = situation;
  if (situation.isOverdue)
    return advice(
      'Its wait should have ended, and no worker ended it. Check that a worker runs, then:',
      act(`redispatch ${id}`),
    );
  const before = until === null ? '' : ` before ${until}`;
  switch (status) {
    case 'accepted':
    case 'funded':
      return advice('None while a worker runs: it is left within seconds. If it stays:', act(`redispatch ${id}`));
    case 'compliance_hold':
      return advice(`The partner has the recipient verified${before}; then it expires.`, ops(`show ${recipientId}`));
    case 'awaiting_funds':
      return advice(
        `None: the provider confirms the money${before}, or it expires. To end it now:`,
        act(`cancel ${id}`),
      );
    case 'paying_out':
      return advice(`None: the rail answers${before}, or the settlement goes to review.`);
    case 'needs_review':
      return reviewAdvice(id, situation.review);
    case 'settled':
    case 'rejected':
    case 'expired':
    case 'failed':
    case 'canceled':
      return endedAdvice(situation);
  }
}

function endedAdvice({ settlementId, status, refundDue, hasRailPaid }: SettlementSituation): Advice {
  if (refundDue === undefined) return advice('None: it has ended.');
  if (hasRailPaid && status !== 'settled')
    return advice(
      `It ended without a payout, and the rail says that it paid. Keep the ${refundDue}, and settle it with the rail.`,
      '',
      'Reviews',
    );
  return advice(
    `It has ended, and ${refundDue} is due back to the payer. Give it back outside of the service, then:`,
    act(`refund record ${settlementId} --amount <amount> --reference <reference>`),
    'Money that is due back',
  );
}

function reviewAdvice(id: string, review: ReviewRequest | undefined): Advice {
  const resolve = (outcome: string): string =>
    ops(`resolve ${id} ${outcome} --operator <name> --note <how it is known>`);
  if (review?.agreedAt) return advice(`It is ${reviewState(review)}. To carry it out:`, resolve(review.outcome));
  const ask = `Ask the payout rail whether ${id} was paid. Then:`;
  return advice(review ? `It is ${reviewState(review)}. ${ask}` : ask, resolve('paid|refused'));
}

/** For an open object that Temporal runs no workflow for. */
export const lostRunAdvice = (id: string, isSettlement: boolean): Advice => ({
  say: isSettlement
    ? 'It has no run. A sweep starts it again within a minute. To start it now:'
    : 'It has no run. A sweep starts it again within a minute. To start all that is open now:',
  command: act(isSettlement ? `redispatch ${id}` : 'redispatch --all'),
  section: 'Lost runs',
});

/** For an object whose workflow repeats an activity that fails. */
export const failingActivityAdvice = (name: string, failure: string): Advice =>
  failure === WORKER_BUSY
    ? alert(`The step ${name} waits: its worker runs as many of them as it may. If that lasts, start more workers.`)
    : {
        say:
          `The step ${name} fails and is repeated: ${failure}. The worker's log says where, by the same id. ` +
          'When its cause is fixed, it continues by itself.',
        command: '',
        section: 'Logs',
      };

/** A workflow task that has failed and is repeated. `cause`: null when no failure is recorded, as after a timeout. */
export type FailingTask = { readonly attempt: number; readonly cause: string | null; readonly isKeyMissing: boolean };

/** For an object whose workflow cannot go on in the workers that run: such as new code that cannot replay its run. */
export const failingTaskAdvice = ({ attempt, cause, isKeyMissing }: FailingTask): Advice => ({
  say:
    `Its workflow task fails and is repeated, attempt ${attempt}: ${cause ?? 'no cause is recorded'}. ` +
    `${isKeyMissing ? 'Give the workers that key' : 'Put the earlier version of the worker back, or correct it'}: ` +
    'then it continues by itself. Redispatching it changes nothing.',
  command: '',
  section: isKeyMissing ? 'Payload encryption' : 'Changing workflows',
});

/** For an object whose tasks no worker takes. */
export const unservedAdvice = (queue: UnservedQueue): Advice => ({
  say: `Start workers, or promote a version that has some: ${unservedSentence(queue)}.`,
  command: promotionCommand(queue),
  section: 'Worker versions',
});

/** For an object whose committed work has not reached Temporal. */
export const queuedAdvice = (lastError: string | null): Advice => ({
  say:
    'Committed work has not reached Temporal' +
    `${lastError === null ? '' : ` (last error: ${lastError})`}. Is Temporal up, and does a dispatcher run?`,
  command: ops('stuck'),
  section: 'When the outbox grows',
});

export function verificationAdvice(status: VerificationStatus, isManual: boolean, until: string): Advice {
  if (status !== 'pending' && status !== 'in_review') return advice('None: it has ended.');
  const who = isManual ? 'the partner decides it' : 'the identity provider decides it';
  return advice(`None: ${who} before ${until}, or it expires.`);
}

export function deliveryAdvice(delivery: {
  readonly deliveryId: string;
  readonly webhookId: string;
  readonly status: DeliveryStatus;
  readonly isLate: boolean;
  /** Its endpoint fails, and delays what is due. */
  readonly isFailing: boolean;
}): Advice {
  const { deliveryId, webhookId, status, isLate, isFailing } = delivery;
  const retry = act(`retry-delivery ${deliveryId}`);
  switch (status) {
    case 'pending':
      if (isFailing)
        return alert(
          `Its endpoint fails: deliveries to ${webhookId} are attempted one after the other. To attempt it now:`,
          retry,
        );
      return isLate
        ? alert('It is late. Check that a worker polls the queue webhook-delivery, then:', retry)
        : alert('None: it is attempted by itself. To attempt it now:', retry);
    case 'succeeded':
      return alert('None: the subscriber has it. To send the same bytes again:', retry);
    case 'exhausted':
      return alert('The subscriber failed eight times. Tell the partner. When the endpoint answers again:', retry);
    case 'skipped':
      return alert(`Its subscription ${webhookId} was disabled: show it to see why. To send it anyway:`, retry);
    case 'canceled':
      return alert('None: its subscription was deleted.');
  }
}

/** @param hasUntaken deliveries wait that the lane has not taken */
export const laneAdvice = (hasUntaken: boolean): Advice =>
  hasUntaken
    ? alert('Deliveries wait for this lane. See which subscriptions take longest; add a worker if all are busy.')
    : alert('None: it takes what is due.');

export function subscriptionAdvice(subscription: {
  readonly webhookId: string;
  readonly status: WebhookStatus;
  readonly disabledReason: DisabledReason | null;
  readonly isDeleted: boolean;
  readonly isFailing: boolean;
}): Advice {
  const { webhookId, status, disabledReason, isDeleted, isFailing } = subscription;
  if (isDeleted) return alert('None: the partner deleted it.');
  if (status === 'enabled')
    return isFailing
      ? alert('Its endpoint fails. Tell the partner. After five days without a success it is disabled.')
      : alert('None: it works.');
  if (disabledReason === 'operator')
    return brake('An operator has disabled it; its audit entries say why. To end that:', `webhook enable ${webhookId}`);
  return disabledReason === 'requested'
    ? alert('None: the partner disabled it.')
    : alert('Tell the partner, who enables it again when the endpoint works: PATCH /v1/webhooks/<id>.');
}

export function organizationAdvice(
  orgId: string,
  { hasFullKey, isSuspended }: { readonly hasFullKey: boolean; readonly isSuspended: boolean },
): Advice {
  if (isSuspended)
    return brake('An operator has suspended it; its audit entries say why. To end that:', `org resume ${orgId}`);
  return hasFullKey
    ? brake('None. If it has lost its key, two operators give it a new one:', `org reissue-key ${orgId}`)
    : brake('It has no active key of scope full. Two operators give it one:', `org reissue-key ${orgId}`);
}

export const advice = (say: string, command = '', section: RunbookSection = WAITS): Advice => ({
  say,
  command,
  section: command === '' && say.startsWith('None') ? null : section,
});
const brake = (say: string, command: string): Advice => advice(say, act(command), 'Brakes');
const alert = (say: string, command = ''): Advice => advice(say, command, 'Alerts');
