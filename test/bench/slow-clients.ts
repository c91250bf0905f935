/**
 * `slow-clients`: what a thousand clients that send almost nothing cost everybody else. The same reads are measured
 * without them, with them and without them again. With them the 99th percentile may be twice as long.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { signUp } from '../../scripts/sandbox/partner.ts';
import { borrowStack } from '../../scripts/stack/borrowed.ts';
import { type Bench, count, percentile } from './bench.ts';
import type { SlowClientReport } from './slow-client-process.ts';

/** Reads for half a minute each time: long enough for the server to cut slow clients off, and for them to come back. */
const REQUESTS = 500;
const PACE_MS = 60;
const RATIO_MAX = 2;
const P99 = 0.99;

export const slowClients: Bench = command({
  name: 'slow-clients',
  description: `The reads of others next to clients that send almost nothing. Exits with 1 above ${RATIO_MAX} times.`,
  takes: { connections: count('--connections <count>', 'how many slow connections are held', 1_000) },
  run: async (printer: Printer, { connections }) => {
    const stack = await borrowStack(undefined, printer.warn);
    try {
      return (await compare(printer, stack.baseUrl, connections)) <= RATIO_MAX ? EXIT.done : EXIT.refused;
    } finally {
      await stack.giveBack();
    }
  },
});

/** @returns the 99th percentile with the slow clients, divided by the one without them */
async function compare({ print, printData }: Printer, baseUrl: string, connections: number): Promise<number> {
  await readTimes(baseUrl);
  const before = await readTimes(baseUrl);
  const { hostname: host, port } = new URL(baseUrl);
  const clients = await startSlowClients([host, port, String(connections)]);
  const during = await readTimes(baseUrl);
  const { open, ended } = await clients.stop();
  const after = await readTimes(baseUrl);
  const phases = Object.entries({ before, during, after }).map(([phase, times]) => ({
    phase,
    p50_ms: percentile(times, 0.5),
    p99_ms: percentile(times, P99),
  }));
  for (const { phase, p50_ms, p99_ms } of phases)
    print(`${phase.padEnd(8)} p50 ${p50_ms.toFixed(2)} ms   p99 ${p99_ms.toFixed(2)} ms`);
  const endings = ended.map(([status, closed]) => `${closed} with ${status === 0 ? 'no answer' : status}`);
  print(`ended by the server: ${endings.join(', ') || 'none'}`);
  const ratio = percentile(during, P99) / percentile([...before, ...after], P99);
  print(`${open} slow connections. With them p99 is ${ratio.toFixed(2)} times as long as without them.`);
  print(`The limit is ${RATIO_MAX} times.`);
  const endedBy = ended.map(([status, closed]) => ({ status: status === 0 ? null : status, count: closed }));
  printData({ phases, open, ended: endedBy, ratio, ratio_max: RATIO_MAX });
  return ratio;
}

async function startSlowClients(args: readonly string[]) {
  const program = fork(path.join(import.meta.dirname, 'slow-client-process.ts'), args, {
    execArgv: ['--import', 'tsx'],
  });
  const reported = async (): Promise<SlowClientReport> => (await once(program, 'message'))[0];
  await reported();
  return {
    async stop(): Promise<SlowClientReport> {
      const report = reported();
      program.send('report');
      const last = await report;
      program.disconnect();
      await once(program, 'exit');
      return last;
    },
  };
}

/** Reads one after another, with a key of their own, so that they stay below the rate limit. */
async function readTimes(baseUrl: string): Promise<number[]> {
  const { client } = await signUp({ baseUrl, attemptsMax: 1 });
  const times: number[] = [];
  for (let done = 0; done < REQUESTS; done += 1) {
    const startedAt = performance.now();
    await client.service.paymentMethods();
    const tookMs = performance.now() - startedAt;
    times.push(tookMs);
    await delay(Math.max(0, PACE_MS - tookMs));
  }
  return times;
}
