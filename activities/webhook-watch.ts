/**
 * Looks for new deliveries for all runs of this process that have none left. One statement serves all of them, so a run
 * that stays for a moment costs almost nothing.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Queryable } from '../db/client.ts';
import { listSubscriptionsWithWork } from '../db/queries/webhook-run.ts';

const INTERVAL_MS = 50;

/** Calls `found` once, when the subscription has something to do for this run. @returns what stops the watch */
export type Watch = (webhookId: string, run: number, found: () => void) => () => void;

export function createWatch(db: Queryable): Watch {
  const watched = new Map<string, { readonly run: number; readonly found: () => void }>();
  let isLooking = false;

  const look = async (): Promise<void> => {
    isLooking = true;
    while (watched.size > 0) {
      await delay(INTERVAL_MS);
      const runs = new Map([...watched].map(([webhookId, { run }]) => [webhookId, run]));
      // When PostgreSQL does not answer, each run finds that out by its own next statement.
      const ids = runs.size === 0 ? [] : await listSubscriptionsWithWork(db, runs).catch(() => []);
      for (const webhookId of ids) {
        const entry = watched.get(webhookId);
        // Another run of the same subscription may watch it by now.
        if (entry === undefined || entry.run !== runs.get(webhookId)) continue;
        watched.delete(webhookId);
        entry.found();
      }
    }
    isLooking = false;
  };
  return (webhookId, run, found) => {
    const entry = { run, found };
    watched.set(webhookId, entry);
    if (!isLooking) void look();
    return () => {
      if (watched.get(webhookId) === entry) watched.delete(webhookId);
    };
  };
}
