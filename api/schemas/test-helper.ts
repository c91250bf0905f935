/** The test helpers of the local sandbox (contract §6). */
import { z } from 'zod';
import { DURATION_PATTERN, parseDuration } from '../../domain/duration.ts';
import { SANDBOX_EVENTS } from '../../domain/sandbox/event.ts';
import { SETTLEMENT_STATUSES } from '../../domain/settlement.ts';
import {
  currency,
  EXAMPLE_SETTLEMENT_ID,
  environment,
  money,
  nullAsAbsent,
  objectId,
  pattern,
  timestamp,
} from './common.ts';

const DURATION_LENGTH_MAX = 40;
const ADVANCE_DAYS_MAX = 366;
const ADVANCE_MS_MAX = ADVANCE_DAYS_MAX * 24 * 60 * 60_000;

export const SandboxEventRequest = z
  .strictObject({
    event: z.enum(SANDBOX_EVENTS).meta({ example: 'collection_succeeded' }),
    amount: nullAsAbsent(money()).meta({
      description:
        'With collection_succeeded and collection_partial only, in the source currency. By default the missing ' +
        'amount, or half of it with collection_partial.',
    }),
  })
  .meta({ id: 'SandboxEventRequest' });

export const SandboxEventResponse = z
  .object({
    command_id: objectId(),
    settlement_id: z.string().meta({ example: EXAMPLE_SETTLEMENT_ID }),
    event: z.enum(SANDBOX_EVENTS),
    amount: money().nullable(),
    currency: currency(),
    environment: environment(),
    simulation: z.literal(true),
  })
  .meta({ id: 'SandboxEventResponse' });

const duration = () =>
  pattern(DURATION_PATTERN, 1, DURATION_LENGTH_MAX)
    .refine(
      (value) => {
        const durationMs = parseDuration(value);
        return durationMs === undefined || (durationMs > 0 && durationMs <= ADVANCE_MS_MAX);
      },
      { error: `must be more than nothing and at most P${ADVANCE_DAYS_MAX}D` },
    )
    .meta({
      example: 'P5D',
      description: 'ISO 8601 in weeks, days, hours, minutes and seconds. By default to the end of the current wait.',
    });

/** The body is optional. */
export const AdvanceRequest = nullAsAbsent(
  z.strictObject({ by: nullAsAbsent(duration()) }).meta({ id: 'AdvanceRequest' }),
);

export const AdvanceResponse = z
  .object({
    settlement_id: z.string().meta({ example: EXAMPLE_SETTLEMENT_ID }),
    status: z.enum(SETTLEMENT_STATUSES).meta({
      description: 'The status before the move. The settlement reacts to its new time immediately afterwards.',
    }),
    now: timestamp().meta({ description: "The time on the settlement's own clock." }),
    expires_at: timestamp().nullable(),
    environment: environment(),
    simulation: z.literal(true),
  })
  .meta({ id: 'AdvanceResponse' });
