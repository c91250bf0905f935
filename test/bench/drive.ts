/** Card settlements at a steady rate, whatever their answers take. */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { Patience } from '../support/wait.ts';
import { untilNone } from './bench.ts';
import type { Settler } from './payer.ts';

/** More requests that wait for an answer mean that the rate is too high at the moment. */
const IN_FLIGHT_MAX = 64;
const ENDED = { timeoutMs: 180_000 };
const OPEN = `SELECT FROM settlements WHERE status <> 'settled' UNION ALL
  SELECT FROM webhook_deliveries WHERE status = 'pending' UNION ALL SELECT FROM outbox LIMIT 1`;

/** How many were paid; how many were left out, because too many requests waited; and how many requests failed. */
export type Driven = { readonly paid: number; readonly skipped: number; readonly failed: number };

/**
 * Settles at this rate until `endMs`, by each settler in turn.
 *
 * @returns `takeTimes`: how long each `POST /v2/settle` since the last call took, in ms
 */
export function startDrive(settlers: readonly Settler[], perSecond: number, endMs: number) {
  let times: number[] = [];
  const drive = async (): Promise<Driven> => {
    const startedMs = performance.now();
    const underWay = new Set<Promise<void>>();
    let paid = 0;
    let skipped = 0;
    let failed = 0;
    const settle = async ({ settle: request, pay }: Settler): Promise<void> => {
      const askedMs = performance.now();
      const settlementId = await request();
      times.push(performance.now() - askedMs);
      await pay(settlementId);
      paid += 1;
    };
    for (let index = 0; performance.now() < endMs; index += 1) {
      const dueMs = startedMs + (index * 1_000) / perSecond;
      await delay(Math.max(0, dueMs - performance.now()));
      const settler = settlers[index % settlers.length];
      if (!settler || underWay.size >= IN_FLIGHT_MAX) {
        skipped += 1;
        continue;
      }
      const settling = settle(settler)
        .catch(() => {
          failed += 1;
        })
        .finally(() => underWay.delete(settling));
      underWay.add(settling);
    }
    await Promise.all(underWay);
    return { paid, skipped, failed };
  };
  const takeTimes = (): number[] => {
    const taken = times;
    times = [];
    return taken;
  };
  return { done: drive(), takeTimes };
}

/** Waits until every settlement has settled, and its last delivery has ended. */
export const untilSettled = (database: pg.Pool, patience: Patience = ENDED) =>
  untilNone(database, 'last delivery', OPEN, patience);
