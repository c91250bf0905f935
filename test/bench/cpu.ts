/** What processes use, with their children. Known on Linux only. */
import { readdirSync, readFileSync } from 'node:fs';

/** Process ids by the name in the report. */
export type Processes = Readonly<Record<string, readonly number[]>>;
/** CPU milliseconds of each delivery, settlement or call, by the name of the process. */
export type CpuMsEach = Readonly<Record<string, number>>;

/** Fields of `/proc/<pid>/stat`, counted from the one after the name in parentheses. */
const PARENT = 1;
/** User and system time of the process, then of its children that have ended. */
const TIMES = [11, 12, 13, 14] as const;
const PAGES = 21;
/** The kernel's units, on every Linux that Node runs on. */
const MS_PER_TICK = 10;
const MIB_PER_PAGE = 4_096 / 2 ** 20;

/** @returns what divides the CPU time since this call by the number of things that were done */
export function startCpu(processes: Processes): (done: number) => CpuMsEach {
  const used = () => Object.entries(processes).map(([name, pids]): [string, number] => [name, usageOf(pids).cpuMs]);
  const before = new Map(used());
  return (done) =>
    Object.fromEntries(used().map(([name, ms]) => [name, (ms - (before.get(name) ?? Number.NaN)) / done]));
}

/** The CPU time so far, and the resident memory now; NaN where they are not known. */
export function usageOf(pids: readonly number[]): { readonly cpuMs: number; readonly residentMib: number } {
  const ours = processFields().filter(([pid, fields]) => pids.includes(pid) || pids.includes(fields[PARENT] ?? 0));
  const sumOf = (...places: readonly number[]): number =>
    ours.length === 0
      ? Number.NaN
      : ours.reduce((sum, [, fields]) => places.reduce((part, place) => part + (fields[place] ?? 0), sum), 0);
  return { cpuMs: sumOf(...TIMES) * MS_PER_TICK, residentMib: sumOf(PAGES) * MIB_PER_PAGE };
}

function processFields(): (readonly [pid: number, fields: readonly number[]])[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return [[Number(name), fields.map(Number)] as const];
    } catch {
      // The process ended during this reading.
      return [];
    }
  });
}
