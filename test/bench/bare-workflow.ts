/** The least that a settlement needs of Temporal: it stores a row, waits for a signal, and stores two more rows. */
import { condition, defineSignal, proxyLocalActivities, setHandler } from '@temporalio/workflow';
import type { BareActivities } from './bare-worker.ts';

const { store } = proxyLocalActivities<BareActivities>({ startToCloseTimeout: '10 seconds' });

export async function bare(id: string): Promise<void> {
  let isResumed = false;
  setHandler(defineSignal('resumed'), () => {
    isResumed = true;
  });
  await store(id, 1);
  await condition(() => isResumed);
  await store(id, 2);
  await store(id, 3);
}
