/**
 * `worker`: how long a worker takes from its start until it is ready, and its memory, idle and with waiting
 * settlements.
 */
import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { z } from 'zod';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { type Bench, count, inParallel } from './bench.ts';
import { spreadOf, tableOf } from './figure.ts';
import { createPayer } from './payer.ts';
import { type BenchStack, type Started, withBenchStack } from './stack.ts';
import { waitUntil } from './wait.ts';

const AT_ONCE = 16;
const SETTLE_DOWN_MS = 3_000;
const KIB_PER_MIB = 1_024;
const WAIT_MS = 900_000;
const ReadyLine = z.object({
  time: z.union([z.number(), z.iso.datetime()]).transform((time) => new Date(time).getTime()),
});

const run = promisify(execFile);

export const worker: Bench = command({
  name: 'worker',
  description: 'How long a worker takes until it is ready, and its memory.',
  takes: {
    starts: count('--starts <count>', 'how often the worker is started', 5),
    settlements: count('--settlements <count>', 'how many settlements wait when the memory is read', 2_000),
  },
  run: ({ print, printData }: Printer, { starts, settlements }) =>
    withBenchStack(async (stack) => {
      const times: number[] = [];
      const idle: number[] = [];
      let last: Started | undefined;
      for (let start = 0; start < starts; start += 1) {
        await last?.stop();
        last = await stack.start('worker', 'worker/main.ts', 'worker ready');
        times.push(readyAtMs(last) - last.startedAtMs);
        await delay(SETTLE_DOWN_MS);
        idle.push(await residentMib(last));
      }
      await stack.start('api', 'api/main.ts', 'API ready');
      await settleAndWait(stack, settlements);
      await delay(SETTLE_DOWN_MS);
      const waiting = last === undefined ? Number.NaN : await residentMib(last);
      print(
        tableOf(
          ['worker', 'value'],
          [
            ['start to ready, ms', times],
            ['resident idle, MiB', idle],
            [`resident with ${settlements} waiting settlements, MiB`, waiting.toFixed(0)],
          ],
        ),
      );
      printData({
        start_to_ready_ms: spreadOf(times),
        resident_idle_mib: spreadOf(idle),
        waiting_settlements: settlements,
        resident_waiting_mib: waiting,
      });
      return EXIT.done;
    }),
});

/** The time in the process's own log line. The process that waits for the line reads the log only now and then. */
function readyAtMs({ log }: Started): number {
  const line = log.split('\n').find((text) => text.includes('worker ready')) ?? '';
  return ReadyLine.parse(JSON.parse(line)).time;
}

async function residentMib({ pid }: Started): Promise<number> {
  const { stdout } = await run('ps', ['-o', 'rss=', '-p', String(pid)]);
  return Number(stdout) / KIB_PER_MIB;
}

async function settleAndWait(stack: BenchStack, settlements: number): Promise<void> {
  const payer = await createPayer(stack, 'Marcia Brown');
  await inParallel(settlements, AT_ONCE, async () => {
    await payer.settle();
  });
  const allWait = async (): Promise<boolean> => {
    const { rows } = await stack.database.query(
      "SELECT (SELECT count(*) FROM settlements WHERE status = 'awaiting_funds') = $1 AND NOT EXISTS (SELECT FROM outbox) AS reached",
      [settlements],
    );
    return rows[0].reached;
  };
  await waitUntil('the wait of every settlement', allWait, { everyMs: 500, timeoutMs: WAIT_MS });
}
