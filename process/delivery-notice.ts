/**
 * Tells the lanes, in whatever process they are, that deliveries were committed. This is a statement of its own after
 * the commits, at most every few milliseconds: a notification inside a transaction would make all commits wait for each
 * other. Only the lane of the organization that is served is notified: a lane whose endpoints hang always has
 * deliveries, and its look makes the others wait. A notification that is lost only delays: lanes also look by themselves.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../db/client.ts';
import { notifyLane } from '../db/queries/webhook-lane.ts';
import { asProcess, servedOrganization } from '../db/tenant.ts';
import { ALL_LANES, laneOf } from '../domain/webhook.ts';

/** The least time between two notifications of a lane. */
const INTERVAL_MS = 40;

/** @returns what is to be called after a commit. It never waits and never throws. */
export function createDeliveryNotice(db: Database): () => void {
  const notices = ALL_LANES.map((lane) => createNotice(() => notifyLane(db, lane)));
  return () => {
    const organization = servedOrganization();
    for (const lane of organization === undefined ? ALL_LANES : [laneOf(organization)]) notices[lane]?.();
  };
}

function createNotice(notify: () => Promise<void>): () => void {
  let isNudged = false;
  let isRunning = false;

  const run = async (): Promise<void> => {
    while (isNudged) {
      isNudged = false;
      // The lanes find out by themselves that PostgreSQL does not answer.
      await notify().catch(() => undefined);
      await delay(INTERVAL_MS);
    }
    isRunning = false;
  };
  return () => {
    isNudged = true;
    if (isRunning) return;
    isRunning = true;
    // It tells about the commits of all tenants, so it does not wait in the turn of the one that nudges it.
    void asProcess(run);
  };
}
