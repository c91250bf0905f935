/**
 * For runs of the time when each delivery had a workflow of its own: they hand their delivery over to the workflow of
 * its subscription and end. To be removed when no such run is open or retained any more.
 */
import { handOverDelivery } from '../db/commands/webhook-delivery.ts';
import { getDeliveryStatus } from '../db/queries/webhook-delivery.ts';
import type { DeliveryStatus } from '../domain/webhook.ts';
import type { ActivityDeps } from './deps.ts';

/** What a worker of the previous version needs beside the ids; this one does not. */
type AttemptInput = { readonly attempt: number; readonly nowMs: number; readonly random: number };
type DeliveryInput = { readonly orgId: string; readonly webhookId: string; readonly deliveryId: string };

/** `waitMs` until the next attempt, null when there is none. Recorded runs also have other values than these. */
export type DeliveryState = {
  readonly status: DeliveryStatus;
  readonly waitMs: number | null;
  readonly deferred: boolean;
};

export function webhookDeliveryActivities(deps: ActivityDeps) {
  return {
    /** Sends nothing: it rings the subscription, whose workflow makes the attempt, and ends the run. */
    attemptDelivery: async (input: DeliveryInput & AttemptInput): Promise<DeliveryState> => {
      const status = await handOverDelivery(deps, input);
      return { status, waitMs: null, deferred: false };
    },

    /** The delivery's status. */
    readDelivery: ({ orgId, deliveryId }: DeliveryInput): Promise<DeliveryStatus> =>
      getDeliveryStatus(deps.db, orgId, deliveryId),
  };
}
