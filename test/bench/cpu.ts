/** The CPU time of processes, which other load on the machine leaves alone; on Linux, and nothing elsewhere. */
import { readdirSync, readFileSync } from 'node:fs';

/** Of `/proc/<pid>/stat`, counted after the name in parentheses: the parent, and own and reaped children's time. */
const PARENT = 1;
const TIMES = [11, 12, 13, 14] as const;
/** What the kernel counts in, on every Linux that Node runs on. */
const MS_PER_TICK = 10;

/** CPU milliseconds that these processes and their children have used so far; NaN where that cannot be known. */
export function cpuMs(pids: readonly number[]): number {
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
      // It ended while the others were read.
      return [];
    }
  });
}
