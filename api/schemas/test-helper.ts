/** The test helpers of the local sandbox (contract §6). */
import { z } from 'zod';
import { parseDuration } from '../../domain/duration.ts';
import { amountFaults, SANDBOX_EVENTS } from '../../domain/sandbox/event.ts';
import {
  addFaults,
  closedEnum,
  currency,
  environment,
  money,
  moneyOrNull,
  nullAsAbsent,
  objectId,
  shownSettlementId,
  simulation,
  text,
  timestamp,
  timestampOrNull,
} from './common.ts';
import { settlementStatus } from './settlement.ts';

const DURATION_LENGTH_MAX = 40;
const ADVANCE_DAYS_MAX = 366;
const ADVANCE_MS_MAX = ADVANCE_DAYS_MAX * 24 * 60 * 60_000;

/** Of an amount from 0.01 to 100000.00. */
export const EVENT_AMOUNT_PATTERN = '^(0[.](0[1-9]|[1-9][0-9]?)|[1-9][0-9]{0,4}([.][0-9]{1,2})?|100000([.]0{1,2})?)$';

const SandboxEventName = closedEnum('SandboxEventName', SANDBOX_EVENTS, 'What the simulator reports.');
export const sandboxEvent = () => SandboxEventName.meta({ description: 'What the simulator reports.' });

export const SandboxEventRequest = z
  .strictObject({
    event: sandboxEvent().meta({ example: 'collection_succeeded' }),
    amount: nullAsAbsent(money('').meta({ pattern: EVENT_AMOUNT_PATTERN })).meta({
      description:
        'With collection_succeeded, collection_partial and dispute_opened only, in the source currency. By default the ' +
        'amount that is neither received nor requested before, half of it with collection_partial, and the whole ' +
        'payment with dispute_opened.',
    }),
  })
  .superRefine((body, context) => addFaults(amountFaults(body), context))
  .meta({ id: 'SandboxEventRequest' });

export const SandboxEventResponse = z
  .object({
    command_id: objectId('For support: the id of this command.'),
    settlement_id: shownSettlementId(),
    event: sandboxEvent(),
    amount: moneyOrNull('The amount that is reported; null for an event without one.'),
    currency: currency("The settlement's source currency."),
    environment: environment(),
    simulation: simulation(),
  })
  .meta({ id: 'SandboxEventResponse' });

/** The form of a duration without lookahead, which some languages do not have. */
const SECONDS = '[0-9]{1,9}([.][0-9]{1,3})?S';
const TIME = `T([0-9]{1,6}H([0-9]{1,8}M)?(${SECONDS})?|[0-9]{1,8}M(${SECONDS})?|${SECONDS})`;
const DATE = '[0-9]{1,5}W([0-9]{1,5}D)?|[0-9]{1,5}D';

/** The pattern of a duration explains nothing to a reader, so that the fault says what is wanted. */
const duration = () =>
  text(1, DURATION_LENGTH_MAX)
    .refine((value) => parseDuration(value) !== undefined, {
      error: 'must be an ISO 8601 duration such as P3D',
      abort: true,
    })
    .refine(
      (value) => {
        const durationMs = parseDuration(value) ?? 0;
        return durationMs > 0 && durationMs <= ADVANCE_MS_MAX;
      },
      { error: `must be more than nothing and at most P${ADVANCE_DAYS_MAX}D` },
    )
    .meta({
      pattern: `^P((${DATE})(${TIME})?|${TIME})$`,
      example: 'P5D',
      description: DURATION,
    });
const DURATION =
  'An ISO 8601 duration in weeks, days, hours, minutes and seconds. By default to the end of the current wait.';

/** The body is optional. */
export const AdvanceRequest = nullAsAbsent(
  z.strictObject({ by: nullAsAbsent(duration()).meta({ description: DURATION }) }).meta({ id: 'AdvanceRequest' }),
);

export const AdvanceResponse = z
  .object({
    settlement_id: shownSettlementId(),
    status: settlementStatus(
      'The status before the move. The settlement reacts to its new time immediately afterwards.',
    ),
    now: timestamp("The time on the settlement's own clock."),
    expires_at: timestampOrNull('When the current wait ends; null if there is none.'),
    environment: environment(),
    simulation: simulation(),
  })
  .meta({ id: 'AdvanceResponse' });
