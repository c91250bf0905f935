/** Bodies of provider events (contract §9). Providers add fields, so these objects are open. */
import { z } from 'zod';
import { EXAMPLE_SETTLEMENT_ID, nullAsAbsent, objectId, text } from './common.ts';

const EVENT_ID_LENGTH_MAX = 255;
const EVENT_NAME_LENGTH_MAX = 100;
const SETTLEMENT_ID_LENGTH_MAX = 64;
const eventId = () => text(1, EVENT_ID_LENGTH_MAX);
const minorUnits = () => z.int().min(0);

/** The card processor's event, as Stripe sends them. */
export const CardprocEvent = z
  .looseObject({
    id: eventId(),
    object: z.literal('event'),
    type: text(1, 100),
    created: z.int().min(0),
    livemode: z.boolean(),
    data: z.looseObject({
      object: z.looseObject({
        amount_received: minorUnits().optional(),
        currency: z
          .string()
          .regex(/^[A-Za-z]{3}$/)
          .optional(),
        last_payment_error: z.looseObject({ code: z.string().optional() }).nullish(),
        metadata: z.looseObject({ settlement_id: text(1, SETTLEMENT_ID_LENGTH_MAX).optional() }).optional(),
      }),
    }),
  })
  .meta({
    id: 'CardprocEvent',
    example: {
      id: 'evt_1',
      object: 'event',
      type: 'payment_intent.succeeded',
      created: 1_795_248_000,
      livemode: false,
      data: {
        object: { amount_received: 25_000, currency: 'usd', metadata: { settlement_id: EXAMPLE_SETTLEMENT_ID } },
      },
    },
  });
export type CardprocEvent = z.infer<typeof CardprocEvent>;

/**
 * The bank ledger's event, as Modern Treasury sends them. `amount_reconciled` is the amount that this event adds, in
 * minor units. The amounts of several events add up.
 */
export const BankledgerEvent = z
  .looseObject({
    id: eventId(),
    event: text(1, EVENT_NAME_LENGTH_MAX),
    data: z.looseObject({
      id: eventId(),
      object: text(1, EVENT_NAME_LENGTH_MAX),
      live_mode: z.boolean(),
      status: z.string().nullish(),
      amount_reconciled: nullAsAbsent(minorUnits()),
      currency: nullAsAbsent(z.string().regex(/^[A-Za-z]{3}$/)),
      type: nullAsAbsent(z.string()),
      return_code: nullAsAbsent(z.string()),
      metadata: nullAsAbsent(z.looseObject({ settlement_id: nullAsAbsent(text(1, SETTLEMENT_ID_LENGTH_MAX)) })),
    }),
  })
  .meta({
    id: 'BankledgerEvent',
    example: {
      id: 'evt_2',
      event: 'reconciled',
      data: {
        id: 'exp_1',
        object: 'expected_payment',
        live_mode: false,
        status: 'reconciled',
        amount_reconciled: 25_000,
        currency: 'USD',
        metadata: { settlement_id: EXAMPLE_SETTLEMENT_ID },
      },
    },
  });
export type BankledgerEvent = z.infer<typeof BankledgerEvent>;

export const ProviderEventReceipt = z
  .object({ received: z.literal(true), event_id: objectId(), duplicate: z.boolean(), matched: z.boolean() })
  .meta({ id: 'ProviderEventReceipt' });
