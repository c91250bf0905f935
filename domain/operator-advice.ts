/**
 * What an operator does next about an object, in words. `npm run ops -- show` and Temporal UI say the same. A command
 * is written as it is typed; a section is one of docs/operations.md.
 */
import type { PaymentMethod } from './payment-method.ts';
import type { SettlementStatus } from './settlement/state.ts';
import type { VerificationStatus } from './verification.ts';
import type { DeliveryStatus, DisabledReason, WebhookStatus } from './webhook.ts';

/** Headings of docs/operations.md. */
export const RUNBOOK_SECTIONS = [
  'Why does a settlement wait?',
  'Lost runs',
  'When the outbox grows',
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

export type NextStep = {
  readonly say: string;
  /** Empty when there is nothing to type. */
  readonly command: string;
  /** Null when there is nothing to do. */
  readonly section: RunbookSection | null;
};

const ops = (rest: string): string => `npm run ops -- ${rest}`;
const act = (rest: string): string => ops(`${rest} --operator <name> --note <why>`);

const WAITS: RunbookSection = 'Why does a settlement wait?';

/** Where a settlement stands, for `settlementAdvice`. Money and other things that no step depends on are left out. */
export type SettlementStanding = {
  readonly settlementId: string;
  readonly status: SettlementStatus;
  readonly recipientId: string;
  readonly paymentMethod: PaymentMethod;
  /** What is written of the end of its wait; null where it has none. */
  readonly until: string | null;
  /** The wait has ended, and nothing happened for longer than a timer may be late. */
  readonly isOverdue: boolean;
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

export function settlementAdvice(standing: SettlementStanding): NextStep {
  const { settlementId: id, status, recipientId, until } = standing;
  if (standing.isOverdue)
    return step(
      'Its window has ended, and no worker ended it. Check that a worker runs, then:',
      act(`redispatch ${id}`),
    );
  const before = until === null ? '' : ` before ${until}`;
  switch (status) {
    case 'accepted':
    case 'funded':
      return step('None while a worker runs: it is left within seconds. If it stays:', act(`redispatch ${id}`));
    case 'compliance_hold':
      return step(`The partner has the recipient verified${before}; then it expires.`, ops(`show ${recipientId}`));
    case 'awaiting_funds':
      return step(`None: the provider confirms the money${before}, or it expires. To end it now:`, act(`cancel ${id}`));
    case 'paying_out':
      return step(`None: the rail answers${before}, or the settlement goes to review.`);
    case 'needs_review':
      return step(
        `Ask the payout rail whether ${id} was paid. Then:`,
        ops(`resolve ${id} paid|refused --operator <name> --note <how it is known>`),
      );
    case 'settled':
    case 'rejected':
    case 'expired':
    case 'failed':
    case 'canceled':
      return step('None: it has ended.');
  }
}

/** For an open object that Temporal runs no workflow for. */
export const lostRunStep = (id: string, isSettlement: boolean): NextStep => ({
  say: isSettlement
    ? 'It has no run. A sweep starts it again within a minute. To start it now:'
    : 'It has no run. A sweep starts it again within a minute. To start all that is open now:',
  command: act(isSettlement ? `redispatch ${id}` : 'redispatch --all'),
  section: 'Lost runs',
});

/** For an object whose workflow repeats a step that fails. */
export const failingStep = (name: string, failure: string): NextStep => ({
  say:
    `The step ${name} fails and is repeated: ${failure}. The worker's log has the whole error, by the same id. ` +
    'When its cause is mended, it goes on by itself.',
  command: '',
  section: 'Logs',
});

/** For an object whose committed work has not reached Temporal. */
export const queuedStep = (lastError: string | null): NextStep => ({
  say:
    'Committed work has not reached Temporal' +
    `${lastError === null ? '' : ` (last error: ${lastError})`}. Is Temporal up, and does a dispatcher run?`,
  command: ops('stuck'),
  section: 'When the outbox grows',
});

export function verificationStep(status: VerificationStatus, isManual: boolean, until: string): NextStep {
  if (status !== 'pending' && status !== 'in_review') return step('None: it has ended.');
  const who = isManual ? 'the partner decides it' : 'the identity provider decides it';
  return step(`None: ${who} before ${until}, or it expires.`);
}

export function deliveryStep(standing: {
  readonly deliveryId: string;
  readonly webhookId: string;
  readonly status: DeliveryStatus;
  readonly isLate: boolean;
}): NextStep {
  const { deliveryId, webhookId, status, isLate } = standing;
  const retry = act(`retry-delivery ${deliveryId}`);
  switch (status) {
    case 'pending':
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

export function subscriptionStep(standing: {
  readonly status: WebhookStatus;
  readonly disabledReason: DisabledReason | null;
  readonly isDeleted: boolean;
  readonly isFailing: boolean;
}): NextStep {
  const { status, disabledReason, isDeleted, isFailing } = standing;
  if (isDeleted) return alert('None: the partner deleted it.');
  if (status === 'enabled')
    return isFailing
      ? alert('Its endpoint fails. Tell the partner. After five days without a success it is disabled.')
      : alert('None: it works.');
  return disabledReason === 'requested'
    ? alert('None: the partner disabled it.')
    : alert('Tell the partner, who enables it again when the endpoint works: PATCH /v1/webhooks/<id>.');
}

export const organizationStep = (orgId: string, hasFullKey: boolean): NextStep =>
  hasFullKey
    ? step('None. If it has lost its key, two operators give it a new one:', act(`org reissue-key ${orgId}`))
    : step('It has no active key of scope full. Two operators give it one:', act(`org reissue-key ${orgId}`));

export const noStep = (say: string, command = ''): NextStep => step(say, command);

const step = (say: string, command = '', section: RunbookSection = WAITS): NextStep => ({
  say,
  command,
  section: command === '' && say.startsWith('None') ? null : section,
});
const alert = (say: string, command = ''): NextStep => step(say, command, 'Alerts');
