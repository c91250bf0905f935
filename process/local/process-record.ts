/**
 * A recorded process of this machine. The operating system reuses pids, so a pid alone does not identify a process: the
 * time at which the process started must match too.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * A process as it was recorded. Pid and start time identify it later. The command is for people, and changes when a
 * program replaces itself.
 */
export type ProcessRecord = { readonly pid: number; readonly startedAt: string; readonly command: string };

/** The process that has this pid now; undefined when no process has it. */
export function findProcess(pid: number): ProcessRecord | undefined {
  return process.platform === 'linux' ? fromProc(pid) : fromPs(pid);
}

/** Whether the recorded process is still running: same pid, same start time. */
export function isRunning(record: ProcessRecord): boolean {
  return findProcess(record.pid)?.startedAt === record.startedAt;
}

function fromProc(pid: number): ProcessRecord | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the program's name in parentheses and may hold spaces: count from the last parenthesis.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state] = fields;
    const ticks = fields[19];
    if (state === 'Z' || ticks === undefined) return undefined;
    // The ticks count from the boot of the machine, so the boot id belongs to the start time.
    const startedAt = `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${ticks}`;
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return { pid, startedAt, command };
  } catch {
    return undefined;
  }
}

function fromPs(pid: number): ProcessRecord | undefined {
  try {
    const text = execFileSync('ps', ['-ww', '-o', 'stat=,lstart=,args=', '-p', String(pid)], {
      encoding: 'utf8',
    }).trim();
    // lstart is five words: "Fri Nov 21 11:47:03 2026".
    const [state = '', ...words] = text.split(/\s+/);
    if (state === '' || state.startsWith('Z')) return undefined;
    return { pid, startedAt: words.slice(0, 5).join(' '), command: words.slice(5).join(' ') };
  } catch {
    return undefined;
  }
}
