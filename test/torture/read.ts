/** What every single read of a settlement must be: one moment of it, with a frozen payee. */
import type { Json } from './client.ts';
import { NAMES, type Scenario } from './scenario.ts';

import { ACCOUNT_NUMBER } from './tenant.ts';
import type { Report } from './violation.ts';
import { exceptionText, refundDueMinor, type Seen, type Status } from './world.ts';

/** Minor units of a decimal string with two digits. */
export const minorOf = (amount: string): number => Number(amount.replace('.', ''));

/** What the model is compared with. */
export const seenIn = (read: Json): Seen => ({
  status: read.status,
  failure: read.failure?.code ?? null,
  receivedMinor: minorOf(read.amount_received),
  refundedMinor: minorOf(read.amount_refunded),
  exceptions: read.exceptions.map(({ type, amount, currency }: Json) => exceptionText(type, amount, currency)),
});

export function requireConsistent(scenario: Scenario, read: Json, report: Report): void {
  const times: string[] = read.timeline.map(({ at }: Json) => at);
  const statuses: Status[] = read.timeline.map(({ status }: Json) => status);
  if (statuses.at(-1) !== read.status)
    report('a read is one moment', `${read.status} with the timeline ${statuses.join(' ')}`);
  if ((read.certificate_id !== null) !== (read.status === 'settled'))
    report('a read is one moment', `${read.status} with the certificate ${read.certificate_id}`);
  if (times.some((at, index) => at < (times[index - 1] ?? ''))) report('time never runs back', times.join(' '));
  if (new Set(statuses).size !== statuses.length) report('no state is entered twice', statuses.join(' '));
  const due = refundDueMinor(scenario.amountMinor, seenIn(read));
  if (minorOf(read.amount_refund_due) !== due) {
    const { amount_received: received, amount_refunded: refunded, amount_refund_due: shown } = read;
    report('what is due back is shown', `${read.status}: ${shown} of ${received}, less ${refunded}`);
  }
  const { payee } = read;
  if (payee.name !== NAMES[scenario.name] || payee.account_last4 !== ACCOUNT_NUMBER.slice(-4))
    report('the payee is frozen', `the payee is ${JSON.stringify(payee)}`);
}
