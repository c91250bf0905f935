/** The CPU time of processes. Other load on the machine changes it little. Known on Linux only. */
import { readdirSync, readFileSync } from 'node:fs';

/** Process ids by the name in the report. */
export type Processes = Readonly<Record<string, readonly number[]>>;
/** CPU milliseconds of each delivery, settlement or call, by the name of the process. */
export type CpuMsEach = Readonly<Record<string, number>>;

/** Fields of `/proc/<pid>/stat`, counted from the one after the name in parentheses. */
const PARENT = 1;
/** User and system time of the process, then of its children that have ended. */
const TIMES = [11, 12, 13, 14] as const;
/** The kernel's unit, on every Linux that Node runs on. */
const MS_PER_TICK = 10;

/** @returns what divides the CPU time since this call by the number of things that were done */
export function startCpu(processes: Processes): (done: number) => CpuMsEach {
  const used = () => Object.entries(processes).map(([name, pids]): [string, number] => [name, cpuMs(pids)]);
  const before = new Map(used());
  return (done) =>
    Object.fromEntries(used().map(([name, ms]) => [name, (ms - (before.get(name) ?? Number.NaN)) / done]));
}

/** CPU milliseconds that these processes and their children have used so far; NaN where it is not known. */
function cpuMs(pids: readonly number[]): number {
  const all = processes();
  const ours = all.filter(({ pid, parent }) => pids.includes(pid) || pids.includes(parent));
  return ours.length === 0 ? Number.NaN : ours.reduce((total, { ticks }) => total + ticks * MS_PER_TICK, 0);
}

function processes(): { pid: number; parent: number; ticks: number }[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const fields = stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ')
        .map(Number);
      return [
        {
          pid: Number(name),
          parent: fields[PARENT] ?? 0,
          ticks: TIMES.reduce((total, field) => total + (fields[field] ?? 0), 0),
        },
      ];
    } catch {
      // The process ended during this reading.
      return [];
    }
  });
}
