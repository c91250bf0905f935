/**
 * Tells the lanes, in whatever process they are, that deliveries were committed. This is a statement of its own after
 * the commits, at most every few milliseconds: a notification inside a transaction would make all commits wait for each
 * other. One that is lost only delays: lanes also look by themselves.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../db/client.ts';
import { notifyLanes } from '../db/queries/webhook-lane.ts';

/** The least time between two notifications. */
const INTERVAL_MS = 40;

/** @returns what is to be called after a commit. It never waits and never throws. */
export function createDeliveryNotice(db: Database): () => void {
  let isNudged = false;
  let isRunning = false;

  const run = async (): Promise<void> => {
    while (isNudged) {
      isNudged = false;
      // The lanes find out by themselves that PostgreSQL does not answer.
      await notifyLanes(db).catch(() => undefined);
      await delay(INTERVAL_MS);
    }
    isRunning = false;
  };
  return () => {
    isNudged = true;
    if (isRunning) return;
    isRunning = true;
    void run();
  };
}
