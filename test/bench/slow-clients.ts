/**
 * `slow-clients`: what a thousand clients that send almost nothing cost everybody else. The same reads are measured
 * without them, beside them and without them again. Beside them the 99th percentile may be twice as long.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createClient } from '../../scripts/partner/client.ts';
import { signUp } from '../../scripts/partner/partner.ts';
import { borrowStack } from '../../scripts/stack/borrowed.ts';
import { type Bench, percentile } from './bench.ts';
import type { SlowClientReport } from './slow-client-process.ts';

/** Reads for half a minute each time: long enough for the server to cut slow clients off, and for them to come back. */
const REQUESTS = 500;
const PACE_MS = 60;
const RATIO_MAX = 2;
const P99 = 0.99;

export const slowClients: Bench = {
  usage: 'slow-clients [--connections <n>]   (1000)',
  async run(args) {
    const { values } = parseArgs({ args: [...args], options: { connections: { type: 'string', default: '1000' } } });
    const stack = await borrowStack(undefined, console.log);
    try {
      return (await compare(stack.baseUrl, Number(values.connections))) <= RATIO_MAX ? 0 : 1;
    } finally {
      await stack.giveBack();
    }
  },
};

/** @returns the 99th percentile beside the slow clients, divided by the one without them */
async function compare(baseUrl: string, connections: number): Promise<number> {
  await readTimes(baseUrl);
  const before = await readTimes(baseUrl);
  const { hostname: host, port } = new URL(baseUrl);
  const clients = await startSlowClients([host, port, String(connections)]);
  const beside = await readTimes(baseUrl);
  const { open, ended } = await clients.stop();
  const after = await readTimes(baseUrl);
  for (const [name, times] of Object.entries({ before, beside, after })) {
    console.log(
      `${name.padEnd(8)} p50 ${percentile(times, 0.5).toFixed(2)} ms   p99 ${percentile(times, P99).toFixed(2)} ms`,
    );
  }
  console.log(
    `ended by the server: ${ended.map(([status, count]) => `${count} with ${status === 0 ? 'no answer' : status}`).join(', ') || 'none'}`,
  );
  const ratio = percentile(beside, P99) / percentile([...before, ...after], P99);
  console.log(
    `${open} slow connections; p99 beside them is ${ratio.toFixed(2)} times the p99 without them; the limit is ${RATIO_MAX} times.`,
  );
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
  const client = createClient({ baseUrl: () => baseUrl });
  const { apiKey } = await signUp(client.call);
  await client.close();
  const times: number[] = [];
  for (let done = 0; done < REQUESTS; done += 1) {
    const startedAt = performance.now();
    const answer = await fetch(`${baseUrl}/v2/payment-methods`, { headers: { 'x-api-key': apiKey } });
    await answer.text();
    if (!answer.ok) throw new Error(`A read answered ${answer.status}.`);
    const tookMs = performance.now() - startedAt;
    times.push(tookMs);
    await delay(Math.max(0, PACE_MS - tookMs));
  }
  return times;
}
