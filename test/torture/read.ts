/** What every single read of a settlement must be: one moment of it, with a frozen payee. */
import type { Json } from './client.ts';
import { type Life, NAMES } from './life.ts';
import { refundDueMinor, type Status } from './model.ts';
import { ACCOUNT_NUMBER } from './tenant.ts';
import type { Report } from './violation.ts';

/** Minor units of a decimal string with two digits. */
export const minorOf = (amount: string): number => Number(amount.replace('.', ''));

export function requireConsistent(life: Life, read: Json, report: Report): void {
  const times: string[] = read.timeline.map(({ at }: Json) => at);
  const statuses: Status[] = read.timeline.map(({ status }: Json) => status);
  if (statuses.at(-1) !== read.status)
    report('a read is one moment', `${read.status} with the timeline ${statuses.join(' ')}`);
  if ((read.certificate_id !== null) !== (read.status === 'settled'))
    report('a read is one moment', `${read.status} with the certificate ${read.certificate_id}`);
  if (times.some((at, index) => at < (times[index - 1] ?? ''))) report('time never runs back', times.join(' '));
  if (new Set(statuses).size !== statuses.length) report('no state is entered twice', statuses.join(' '));
  const due = refundDueMinor(life.amountMinor, read.status, minorOf(read.amount_received));
  if (minorOf(read.amount_refund_due) !== due)
    report('what is due back is shown', `${read.status}: ${read.amount_refund_due} of ${read.amount_received}`);
  const { payee } = read;
  if (payee?.name !== NAMES[life.name] || payee.account_last4 !== ACCOUNT_NUMBER.slice(-4))
    report('the payee is frozen', `the payee is ${JSON.stringify(payee)}`);
}
