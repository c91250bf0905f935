/**
 * Lost runs: a settlement or verification is open, a retry of a subscription is due, or a lane is to be served, but no
 * workflow runs for it. Its run was terminated, a fault ended it, or Temporal lost it. A sweep finds such objects
 * (contract §6).
 */
import { laneMessage, type OutboxMessage, SWEPT_KINDS, type SweptKind } from '../../domain/outbox.ts';
import { ALL_LANES } from '../../domain/webhook.ts';
import {
  laneWorkflowId,
  settlementWorkflowId,
  verificationWorkflowId,
  webhookSubscriptionWorkflowId,
} from '../../domain/workflow-id.ts';
import type { Queryable } from '../client.ts';
import { newId } from '../id.ts';
import { listDueSubscriptions, listUnheardSubscriptions } from '../queries/operator/pending-subscription.ts';
import {
  listOpenSettlements,
  listOpenVerifications,
  type OpenFilter,
  type OpenPage,
} from '../queries/operator/waiting.ts';
import { enqueue, listQueued } from '../queries/outbox.ts';
import { getSweepPosition, recordSweep } from '../queries/sweep.ts';
import { lockSubscriptions } from '../queries/webhook.ts';
import { wakeSubscriptions } from '../queries/webhook-retry.ts';
import { type CommitDeps, commit } from './commit.ts';

/** What runs in Temporal. */
export type Runs = {
  /**
   * Which of these workflows run.
   *
   * @throws Error when Temporal does not answer
   */
  findRunning(workflowIds: readonly string[]): Promise<ReadonlySet<string>>;
};

/** A more recent change is left to the dispatcher, which may be about to start the run. */
const RECENT_MS = 15_000;
/** Objects of one statement, and of one call to Temporal. */
const PAGE_SIZE = 200;
/**
 * How many open objects of each kind a sweep reads, for how long, and how many it restarts; the next sweep continues.
 * Temporal's list can be slow, and a sweep that does not end in its activity's time would begin at the same place again.
 */
const LOOKED_AT_MAX = 10_000;
const LOOKING_MS = 3_000;
const RESTARTED_MAX = 1_000;

/** `orgId` is null for what belongs to no organization. */
export type LostRun = { readonly orgId: string | null; readonly message: OutboxMessage };
type List = (db: Queryable, page: OpenPage & OpenFilter, requestId: string) => Promise<LostRun[]>;

/** The lanes: all of them are always open. */
const listLanes: List = async (_db, { after, among }, requestId) =>
  ALL_LANES.map((lane) => ({ orgId: null, message: laneMessage(lane, requestId) })).filter(
    ({ message: { objectId } }) => objectId > after && (among?.includes(objectId) ?? true),
  );

const SWEPT: Readonly<Record<SweptKind, { list: List; workflowIdOf: (objectId: string) => string }>> = {
  settlement: { list: listOpenSettlements, workflowIdOf: settlementWorkflowId },
  verification: { list: listOpenVerifications, workflowIdOf: verificationWorkflowId },
  webhook_subscription: { list: listDueSubscriptions, workflowIdOf: webhookSubscriptionWorkflowId },
  webhook_lane: { list: listLanes, workflowIdOf: laneWorkflowId },
};

type Search = { readonly after: string; readonly recent: OpenFilter['recent'] & object; readonly lostMax: number };

/** Open objects without a run. `afterId`: where the next search continues; empty when this one has reached the end. */
type Found = { readonly lost: readonly LostRun[]; readonly afterId: string };

type SearchDeps = { readonly db: Queryable; readonly runs: Runs };

/** Up to `limit` open objects of this kind that have no run. Changes nothing. */
export async function listLostRuns(
  deps: SearchDeps,
  kind: SweptKind,
  { now, limit }: { readonly now: Date; readonly limit: number },
): Promise<readonly LostRun[]> {
  const lost: LostRun[] = [];
  let after = '';
  do {
    const search = { after, recent: recentAt(now), lostMax: limit };
    const found = await searchLost(deps, kind, search, 'ops');
    lost.push(...found.lost);
    after = found.afterId;
  } while (after !== '' && lost.length < limit);
  return lost.slice(0, limit);
}

/**
 * Restarts the workflow of each open object that has none, through the outbox. May be repeated: an object with an
 * outbox row is left out. A kind whose search fails does not stop the others: Temporal may list no runs, and the lanes
 * need no list.
 *
 * @param now the workflow's time
 * @returns how many of each kind are started again
 * @throws Error after the last kind, when a search has failed
 */
export async function restartLostRuns(
  deps: CommitDeps & SearchDeps,
  now: Date,
): Promise<Readonly<Record<SweptKind, number>>> {
  const requestId = `sweep-${newId()}`;
  const counts = { settlement: 0, verification: 0, webhook_subscription: 0, webhook_lane: 0 };
  const faults: unknown[] = [];
  for (const kind of SWEPT_KINDS) {
    const after = await getSweepPosition(deps.db, kind);
    const search = { after, recent: recentAt(now), lostMax: RESTARTED_MAX };
    const found = await searchLost(deps, kind, search, requestId).catch((fault: unknown) => void faults.push(fault));
    if (!found) continue;
    const { lost, afterId } = found;
    counts[kind] = lost.length;
    await commit(deps, 'lost_runs.restart', async (tx) => {
      await enqueue(tx, ...lost.map(({ message }) => message));
      await recordSweep(tx, kind, { afterId, restarted: lost.length });
    });
  }
  if (faults.length > 0) throw faults[0];
  return counts;
}

/**
 * Wakes the workflows of subscriptions that should have looked for retries or a replay long ago. Temporal may lose its
 * last moments in a failover, and a signal with them: the run then sleeps for up to ten hours, and no later retry wakes
 * it, because the subscription's row says that it was signalled. A run that sends a long queue is signalled in vain.
 */
export async function wakeUnheard(deps: CommitDeps & Pick<SearchDeps, 'db'>): Promise<void> {
  const unheard = await listUnheardSubscriptions(deps.db, RESTARTED_MAX);
  if (unheard.length === 0) return;
  await commit(deps, 'lost_runs.restart', async (tx) => {
    const locked = await lockSubscriptions(
      tx,
      unheard.map(({ webhookId }) => webhookId),
    );
    const requestId = `sweep-${newId()}`;
    const wakes = locked.map((webhook) => ({ webhook, requestId }));
    await wakeSubscriptions(tx, wakes, true);
  });
}

/** Starts the lanes that do not run. To be called when a worker starts; later the sweep does it. */
export async function startLanes(deps: CommitDeps, requestId: string): Promise<void> {
  const messages = ALL_LANES.map((lane) => laneMessage(lane, requestId));
  await commit(deps, 'lost_runs.restart', (tx) => enqueue(tx, ...messages));
}

const recentAt = (now: Date) => ({ since: new Date(now.getTime() - RECENT_MS), until: now });

async function searchLost(
  deps: SearchDeps,
  kind: SweptKind,
  { after, lostMax, ...filter }: Search,
  requestId: string,
): Promise<Found> {
  const lost: LostRun[] = [];
  const endsAtMs = performance.now() + LOOKING_MS;
  let afterId = after;
  for (let lookedAt = 0; lookedAt < LOOKED_AT_MAX && lost.length < lostMax; lookedAt += PAGE_SIZE) {
    const page = { after: afterId, limit: PAGE_SIZE, ...filter };
    const open = await SWEPT[kind].list(deps.db, page, requestId);
    lost.push(...(await lostAmong(deps, kind, open, page, requestId)));
    afterId = open.length < PAGE_SIZE ? '' : (open.at(-1)?.message.objectId ?? '');
    if (afterId === '' || performance.now() >= endsAtMs) break;
  }
  return { lost, afterId };
}

/**
 * An object without a run may have ended since it was listed, or its run may be about to start. So the objects without
 * a run are listed again, without those that have an outbox row, and Temporal is asked again.
 */
async function lostAmong(
  deps: SearchDeps,
  kind: SweptKind,
  open: readonly LostRun[],
  page: OpenPage & OpenFilter,
  requestId: string,
): Promise<readonly LostRun[]> {
  const among = (await withoutRun(deps, kind, open)).map(({ message }) => message.objectId);
  if (among.length === 0) return [];
  const stillOpen = await SWEPT[kind].list(deps.db, { ...page, among }, requestId);
  const queued = await listQueued(deps.db, kind, among);
  return await withoutRun(
    deps,
    kind,
    stillOpen.filter(({ message }) => !queued.has(message.objectId)),
  );
}

async function withoutRun(
  { runs }: SearchDeps,
  kind: SweptKind,
  objects: readonly LostRun[],
): Promise<readonly LostRun[]> {
  if (objects.length === 0) return [];
  const workflowIdOf = ({ message }: LostRun): string => SWEPT[kind].workflowIdOf(message.objectId);
  const running = await runs.findRunning(objects.map(workflowIdOf));
  return objects.filter((object) => !running.has(workflowIdOf(object)));
}
