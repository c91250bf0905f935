/** Starting a replay (contract §11). The workflow of its subscription carries it out. */
import { type DomainError, stateConflict } from '../../domain/error.ts';
import type { ReplaySelection } from '../../domain/webhook.ts';
import { newId } from '../id.ts';
import type { Answer } from '../queries/idempotency-key.ts';
import { lockWebhook, requireNotStopped } from '../queries/webhook.ts';
import { findRunningReplay, insertReplay } from '../queries/webhook-replay.ts';
import { wakeSubscriptions } from '../queries/webhook-retry.ts';
import { type Creation, type CreationDeps, commitCreation } from './creation.ts';

/**
 * Starts to send again what a subscription missed, even to a disabled subscription. Its lock orders two that ask at the
 * same time: one is refused.
 *
 * @throws DomainError `idempotency_key_reused`; `not_found`, for a deleted subscription as well; `state_conflict` while
 *   another replay of the subscription runs, and when an operator has disabled it
 */
export async function startReplay(
  deps: CreationDeps,
  orgId: string,
  { webhookId, selection, requestId }: NewReplay,
  creation: Creation<string>,
): Promise<Answer> {
  return await commitCreation(deps, { ...creation, name: 'webhook.replay' }, async (tx) => {
    const webhook = await lockWebhook(tx, orgId, webhookId);
    requireNotStopped(webhook);
    const running = await findRunningReplay(tx, webhookId);
    if (running) throw replayRuns(running.replayId);
    const replayId = newId();
    await insertReplay(tx, { ...selection, replayId, webhookId, orgId, requestId });
    await wakeSubscriptions(tx, [{ webhook, requestId }]);
    return { id: replayId, created: replayId };
  });
}

type NewReplay = { readonly webhookId: string; readonly selection: ReplaySelection; readonly requestId: string };

const replayRuns = (replayId: string): DomainError =>
  stateConflict(
    'replay_running',
    'A replay of this subscription runs: replay_id names it. Start another one when it has ended.',
    { replay_id: replayId },
  );
