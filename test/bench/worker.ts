/** `worker`: how long a worker takes from its start until it is ready, and its memory, idle and with waiting settlements. */
import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import { z } from 'zod';
import { type Bench, inParallel } from './bench.ts';
import { figure, printTable } from './figure.ts';
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

export const worker: Bench = {
  usage: 'worker [--starts <n>] [--settlements <n>]   (5, 2000)',
  async run(args) {
    const options = {
      starts: { type: 'string', default: '5' },
      settlements: { type: 'string', default: '2000' },
    } as const;
    const { values } = parseArgs({ args: [...args], options });
    const settlements = Number(values.settlements);
    return await withBenchStack(async (stack) => {
      const times: number[] = [];
      const idle: number[] = [];
      let last: Started | undefined;
      for (let start = 0; start < Number(values.starts); start += 1) {
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
      printTable(
        ['worker', 'value'],
        [
          ['start to ready, ms', figure(times)],
          ['resident idle, MiB', figure(idle)],
          [`resident with ${settlements} waiting settlements, MiB`, waiting.toFixed(0)],
        ],
      );
      return 0;
    });
  },
};

/** The time in the process's own log line. The process that waits for the line reads the log only now and then. */
function readyAtMs({ log }: Started): number {
  const line = log.split('\n').find((text) => text.includes('worker ready')) ?? '';
  return ReadyLine.parse(JSON.parse(line)).time;
}

async function residentMib({ pid }: Started): Promise<number> {
  const { stdout } = await run('ps', ['-o', 'rss=', '-p', String(pid)]);
  return Number(stdout) / KIB_PER_MIB;
}

async function settleAndWait(stack: BenchStack, count: number): Promise<void> {
  const payer = await createPayer(stack, 'Marcia Brown', AT_ONCE);
  await inParallel(count, AT_ONCE, async () => {
    await payer.settle();
  });
  await payer.close();
  const allWait = async (): Promise<boolean> => {
    const { rows } = await stack.database.query(
      "SELECT (SELECT count(*) FROM settlements WHERE status = 'awaiting_funds') = $1 AND NOT EXISTS (SELECT FROM outbox) AS reached",
      [count],
    );
    return rows[0].reached;
  };
  await waitUntil('the wait of every settlement', allWait, { everyMs: 500, timeoutMs: WAIT_MS });
}
