/** What a rate of settlements needs, computed from what one costs: the table of docs/scaling.md. */
import { table } from './document.ts';

/**
 * Of a card settlement with one subscriber to all of its events: processor time in ms on a cluster with two of each
 * process at ten settlements a second (`npm run bench -- cluster`), and what the other tables of docs/scaling.md say.
 */
export const COST = {
  cpuMs: { api: 7.1, worker: 18.4, temporal: 24.5, postgres: 29.4 },
  /** Of the service's PostgreSQL; `kept`: when its events have ended. */
  bytes: { grown: 31_600, kept: 12_600 },
  temporal: { actions: 7, bytes: 3_700 },
} as const;

const RATES = [1, 10, 100, 1_000, 10_000];
/** How much of its time a core may be busy. Above this, requests wait for it. */
const BUSY = 0.7;
/** So that one may fail. */
const PROCESSES_MIN = 2;
const DAY_S = 86_400;
const GB = 1e9;
const TB = 1e12;

const cores = (rate: number, cpuMs: number): number => (rate * cpuMs) / 1_000 / BUSY;

/** Two significant digits: more would promise what nobody has measured. */
function shown(value: number): string {
  const rounded = Number(value.toPrecision(2));
  return rounded >= 1_000 ? rounded.toLocaleString('en').replaceAll(',', ' ') : String(rounded);
}

export function planTable(): string {
  const { cpuMs, bytes, temporal } = COST;
  const processes = (rate: number, ms: number) => Math.max(PROCESSES_MIN, Math.ceil(cores(rate, ms)));
  const rows: readonly (readonly [string, (rate: number) => string])[] = [
    ['API processes, of one core each', (rate) => shown(processes(rate, cpuMs.api))],
    ['worker processes, of one core each', (rate) => shown(processes(rate, cpuMs.worker))],
    ['cores of Temporal', (rate) => shown(cores(rate, cpuMs.temporal))],
    ['cores of PostgreSQL, for the service and for Temporal', (rate) => shown(cores(rate, cpuMs.postgres))],
    ['GB a day by which its database grows', (rate) => shown((rate * DAY_S * bytes.grown) / GB)],
    ['TB a year that stay', (rate) => shown((rate * DAY_S * 365 * bytes.kept) / TB)],
    ['million actions a day', (rate) => shown((rate * DAY_S * temporal.actions) / 1e6)],
    ['GB of histories in 30 days', (rate) => shown((rate * DAY_S * 30 * temporal.bytes) / GB)],
  ];
  const head = ['settlements a second', ...RATES.map(shown)];
  return table(
    head,
    rows.map(([name, of]) => [name, ...RATES.map(of)]),
  );
}
