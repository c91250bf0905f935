/**
 * The workflow that each delivery had, before there was one for each subscription. None is started any more. An open
 * run hands its delivery over at its next attempt, and ends. The code stays as it was, so that recorded runs replay.
 */
import { condition, continueAsNew, defineSignal, setHandler, workflowInfo } from '@temporalio/workflow';
import type { DeliveryState } from '../activities/webhook-delivery.ts';
import { ATTEMPTS_MAX, type DeliveryStatus } from '../domain/webhook.ts';
import { local, remote } from './activities.ts';
import type { WebhookDeliveryInput } from './contract.ts';
import { uncancelable } from './uncancelable.ts';

const retryRequested = defineSignal('retryRequested');
const subscriptionChanged = defineSignal('subscriptionChanged');
const placeFreed = defineSignal('placeFreed');

export const webhookDelivery = uncancelable(deliver);

async function deliver({ attempt: first = 1, ...input }: WebhookDeliveryInput): Promise<{ status: DeliveryStatus }> {
  const signals = listen();
  let attempt = first;
  for (;;) {
    signals.retryRequested = signals.slotFreed = false;
    const summary = `Attempt ${attempt} of ${ATTEMPTS_MAX}`;
    const state = await remote(summary).attemptDelivery({
      ...input,
      attempt,
      nowMs: Date.now(),
      random: Math.random(),
    });
    if (state.waitMs === null) return { status: state.status };
    if (!state.deferred) attempt += 1;
    const status = await awaitNextAttempt(input, signals, { ...state, untilMs: Date.now() + state.waitMs, attempt });
    if (status !== 'pending') return { status };
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof deliver>({ ...input, attempt });
  }
}

/** Which signals came since they were last looked at. */
type Signals = { retryRequested: boolean; slotFreed: boolean; subscriptionChanged: boolean };

function listen(): Signals {
  const signals: Signals = { retryRequested: false, slotFreed: false, subscriptionChanged: false };
  setHandler(retryRequested, () => {
    signals.retryRequested = true;
  });
  setHandler(placeFreed, () => {
    signals.slotFreed = true;
  });
  setHandler(subscriptionChanged, () => {
    signals.subscriptionChanged = true;
  });
  return signals;
}

/** `attempt` is the number of the next attempt; it is due at `untilMs`, in epoch milliseconds. */
type Wait = Pick<DeliveryState, 'deferred'> & { readonly attempt: number; readonly untilMs: number };

/**
 * Waits until the next attempt is due or somebody requests it. A deferred delivery waits until a request slot of its
 * subscription is free.
 *
 * @returns `pending`, or the status in which the delivery has ended meanwhile
 */
async function awaitNextAttempt(
  input: WebhookDeliveryInput,
  signals: Signals,
  { deferred, attempt, untilMs }: Wait,
): Promise<DeliveryStatus> {
  const isTime = () => signals.retryRequested || (deferred && signals.slotFreed);
  const summary = deferred
    ? 'Waiting for a free request slot of this subscription'
    : `Waiting before attempt ${attempt}`;
  for (;;) {
    const leftMs = untilMs - Date.now();
    const signaled =
      leftMs > 0 && (await condition(() => isTime() || signals.subscriptionChanged, leftMs, { summary }));
    if (!signals.subscriptionChanged) return 'pending';
    signals.subscriptionChanged = false;
    const status = await local.readDelivery(input);
    if (status !== 'pending' || isTime() || !signaled) return status;
  }
}
