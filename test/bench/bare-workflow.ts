/** The least that a settlement could be in Temporal: a fact is stored, another is waited for, two more are stored. */
import { condition, defineSignal, proxyLocalActivities, setHandler } from '@temporalio/workflow';
import type { BareActivities } from './bare-worker.ts';

const { store } = proxyLocalActivities<BareActivities>({ startToCloseTimeout: '10 seconds' });

export async function bare(id: string): Promise<void> {
  let rung = false;
  setHandler(defineSignal('rung'), () => {
    rung = true;
  });
  await store(id, 1);
  await condition(() => rung);
  await store(id, 2);
  await store(id, 3);
}
