import { expect, test } from 'vitest';
import { createSubscriber, freePlaces } from '../../activities/webhook-subscriber.ts';
import type { ClaimedDelivery } from '../../db/queries/webhook-attempt.ts';
import { IN_FLIGHT } from '../../domain/webhook.ts';

/** Free places of a subscription that has `IN_FLIGHT.most`, and whose requests took so long. */
function placesAt(meanMs: number): number | undefined {
  const delivery = { webhookId: 'webhook', orgId: 'org' } as ClaimedDelivery;
  const requests = 10;
  const subscriber = {
    ...createSubscriber(delivery, () => []),
    inFlightMax: IN_FLIGHT.most,
    requests,
    totalMs: requests * meanMs,
  };
  return freePlaces([subscriber], 0).get('webhook');
}

test.each([
  [1, 224],
  [80, 200],
  [500, 32],
])(
  'a subscription that answers in %i ms has at most %i deliveries claimed that wait for a place',
  (meanMs, waiting) => {
    expect(placesAt(meanMs)).toBe(IN_FLIGHT.most + waiting);
  },
);
