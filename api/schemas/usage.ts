/** What an organization used (contract §14). */
import { z } from 'zod';
import { RETENTION } from '../../domain/retention.ts';
import { SETTLEMENT_STATUSES } from '../../domain/settlement/state.ts';
import { CREATED_KINDS, isTooLong, USAGE_DAYS_MAX } from '../../domain/usage.ts';
import { VERIFICATION_STATUSES } from '../../domain/verification.ts';
import { DELIVERY_STATUSES } from '../../domain/webhook.ts';
import { abort, currency, money, outputText } from './common.ts';

const DATE = /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/;

const isDate = (text: string): boolean => {
  const parsed = new Date(`${text}T00:00:00.000Z`);
  return !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(text) && text >= '1970-01-01';
};

const day = (description: string) =>
  z
    .string()
    .regex(DATE, { abort, error: 'a day such as 2026-11-21' })
    .refine(isDate, { error: 'must be a day from 1970 on', abort })
    .transform((text) => new Date(`${text}T00:00:00.000Z`))
    .meta({ description, pattern: DATE.source, example: '2026-11-21' });

export const UsageQuery = z
  .strictObject({ from: day('The first day (UTC).'), to: day('The last day (UTC), included.') })
  .superRefine((period, context) => {
    if (period.to < period.from) context.addIssue({ code: 'custom', path: ['to'], message: 'must not be before from' });
    if (isTooLong(period))
      context.addIssue({ code: 'custom', path: ['to'], message: `must be at most ${USAGE_DAYS_MAX} days from from` });
  });

const counts = <const Name extends string>(id: string, names: readonly Name[], description: string) =>
  z
    .object(Object.fromEntries(names.map((name) => [name, count(name)])) as Record<Name, ReturnType<typeof count>>)
    .meta({ id, description });
const count = (name: string) => z.int().meta({ description: `How many: \`${name}\`.`, example: 3 });

const Volume = z
  .object({ currency: currency('The source currency.'), amount: money('What was collected.') })
  .meta({ id: 'UsageVolume', description: 'What settled settlements collected in a currency.' });

const UsageDay = z
  .object({
    date: outputText('The day (UTC).', '2026-11-21'),
    settlements: counts(
      'SettlementUsage',
      SETTLEMENT_STATUSES,
      'Settlements that were accepted that day, by status now.',
    ),
    volume: z.array(Volume).meta({ description: 'Of those of them that settled.' }),
    verifications: counts('VerificationUsage', VERIFICATION_STATUSES, 'Verifications opened that day, by status now.'),
    deliveries: counts('DeliveryUsage', DELIVERY_STATUSES, 'Deliveries of events of a day, by status now.')
      .nullable()
      .meta({
        description:
          'Deliveries of events of that day; null once some of them may be deleted: they are kept for at least ' +
          `${RETENTION.events.daysMin} days.`,
      }),
    created: counts('CreationUsage', CREATED_KINDS, 'Objects created that day.'),
  })
  .meta({ id: 'UsageDay', description: 'What was used on one day.' });

export const UsageResponse = z
  .object({
    days: z.array(UsageDay).meta({ description: 'Every day of the period, oldest first.' }),
  })
  .meta({ id: 'UsageResponse' });
