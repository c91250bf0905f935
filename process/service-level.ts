/**
 * What the service-level objectives count (docs/operations.md): of each kind of work, how much went well and how much
 * did not. `docs/alerts.yaml` has the objective, and fires when the error budget is used up too fast.
 */
import { Counter, type Registry } from 'prom-client';

export type ServiceLevel = 'accept' | 'read' | 'delivery' | 'step';

/** Counts from 0 on: a rate needs a sample from before the first error. */
export function countServiceLevels(registry: Registry, levels: readonly ServiceLevel[]) {
  const counter = new Counter({
    name: 'settlement_slo_total',
    help: 'Work that an objective is about, by whether it went well',
    labelNames: ['slo', 'result'],
    registers: [registry],
  });
  for (const slo of levels) for (const result of ['good', 'bad']) counter.inc({ slo, result }, 0);
  return (slo: ServiceLevel, isGood: boolean): void => counter.inc({ slo, result: isGood ? 'good' : 'bad' });
}
