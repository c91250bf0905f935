/** What a worker counts of its activities and deliveries. */
import { Counter, type Registry } from 'prom-client';
import { countServiceLevels } from './service-level.ts';

const STEP_SECONDS_MAX = 5;
const DELIVERY_SECONDS_MAX = 10;

/** @returns `known`: to be called with the names of all activities; the rest is for the activities */
export function activityMetrics(registry: Registry) {
  const failures = new Counter({
    name: 'settlement_activity_failures_total',
    help: 'Attempts of activities that failed by an error that is no refusal',
    labelNames: ['activity'],
    registers: [registry],
  });
  const payoutCallFailures = new Counter({
    name: 'settlement_payout_call_failures_total',
    help: 'Calls to the payout rail that failed',
    registers: [registry],
  });
  const count = countServiceLevels(registry, ['delivery', 'step']);
  return {
    known: (activities: readonly string[]): void => {
      for (const activity of activities) failures.inc({ activity }, 0);
    },
    /** @param of `isStep`: it is a step of a settlement */
    activityEnded: (activity: string, of: { isStep: boolean; isFailed: boolean; seconds: number }): void => {
      if (of.isFailed) failures.inc({ activity });
      if (of.isStep) count('step', !of.isFailed && of.seconds <= STEP_SECONDS_MAX);
    },
    payoutCallFailed: (): void => payoutCallFailures.inc(),
    /** @param lateSeconds how long it was due. What is late because its endpoint is slow is neither good nor bad */
    deliveryTaken: (lateSeconds: number, waitedForEndpoint: boolean): void => {
      const isGood = lateSeconds <= DELIVERY_SECONDS_MAX;
      if (isGood || !waitedForEndpoint) count('delivery', isGood);
    },
  };
}
