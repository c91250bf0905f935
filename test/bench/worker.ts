/** `worker`: how long a worker takes from its start until it is ready, and its memory, idle and with waiting settlements. */
import { setTimeout as delay } from 'node:timers/promises';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { inParallel } from '../support/parallel.ts';
import { until } from '../support/wait.ts';
import { type Bench, count, report } from './bench.ts';
import { usageOf } from './cpu.ts';
import { createPayer } from './payer.ts';
import { type Started, withBenchStack } from './stack.ts';

const AT_ONCE = 16;
const SETTLE_DOWN_MS = 3_000;
const WAIT = { timeoutMs: 900_000, everyMs: 500 };

export const worker: Bench = command({
  name: 'worker',
  description: 'How long a worker takes until it is ready, and its memory.',
  takes: {
    starts: count('--starts <count>', 'how often the worker is started', 5),
    settlements: count('--settlements <count>', 'how many settlements wait when the memory is read', 2_000),
  },
  run: (printer: Printer, { starts, settlements }) =>
    withBenchStack(async (stack) => {
      const times: number[] = [];
      const idle: number[] = [];
      let last: Started | undefined;
      const residentMib = async (): Promise<number> => {
        await delay(SETTLE_DOWN_MS);
        return usageOf([last?.pid ?? 0]).residentMib;
      };
      for (let start = 0; start < starts; start += 1) {
        await last?.stop();
        const startedMs = performance.now();
        last = await stack.start('worker/main.ts');
        times.push(performance.now() - startedMs);
        idle.push(await residentMib());
      }
      await stack.start('api/main.ts');
      const { settle } = await createPayer(stack);
      await inParallel(Array(settlements).keys(), AT_ONCE, settle);
      const left = `SELECT FROM outbox UNION ALL SELECT FROM settlements WHERE status <> 'awaiting_funds' LIMIT 1`;
      await until('wait of every settlement', async () => (await stack.database.query(left)).rowCount === 0, WAIT);
      const rows = [
        ['start to ready, ms', times],
        ['resident idle, MiB', idle],
        [`resident with ${settlements} waiting settlements, MiB`, [await residentMib()]],
      ] as const;
      report(printer, 'worker', [{ head: ['worker', 'value'], rows }]);
      return EXIT.done;
    }),
});
