/**
 * What clients that hold a thousand connections and send next to nothing cost everybody else: the same reads without
 * them, beside them and without them again. Beside them the slowest hundredth may take twice as long.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { borrowStack } from '../../scripts/stack/borrowed.ts';
import { type Bench, percentile } from './bench.ts';
import type { SlowClientReport } from './slow-client-process.ts';

/** Half a minute of reads each time: long enough that the slow ones are cut off, and come again, in the middle of it. */
const REQUESTS = 500;
const PACE_MS = 60;
const RATIO_WANTED = 2;
const P99 = 0.99;
const Organization = z.object({ api_key: z.string() });

export const slowClients: Bench = {
  usage: 'slow-clients [--connections <n>]   (1000)',
  async run(args) {
    const { values } = parseArgs({ args: [...args], options: { connections: { type: 'string', default: '1000' } } });
    const stack = await borrowStack(undefined, console.log);
    try {
      return (await compare(stack.baseUrl, Number(values.connections))) <= RATIO_WANTED ? 0 : 1;
    } finally {
      await stack.giveBack();
    }
  },
};

/** @returns how often longer the slowest hundredth takes beside the slow clients */
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
    `ended meanwhile: ${ended.map(([status, count]) => `${count} with ${status === 0 ? 'no answer' : status}`).join(', ') || 'none'}`,
  );
  const ratio = percentile(beside, P99) / percentile([...before, ...after], P99);
  console.log(
    `${open} slow connections; p99 beside them ${ratio.toFixed(2)} times that without, ${RATIO_WANTED} times is the limit.`,
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

/** One read after another, by a caller of its own, so that no limit is met. */
async function readTimes(baseUrl: string): Promise<number[]> {
  const created = await fetch(`${baseUrl}/v1/orgs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'Bench', country: 'JM', contact_email: 'bench@acme.example' }),
  });
  const { api_key: apiKey } = Organization.parse(await created.json());
  const times: number[] = [];
  for (let done = 0; done < REQUESTS; done += 1) {
    const startedAt = performance.now();
    const answer = await fetch(`${baseUrl}/v2/payment-methods`, { headers: { 'x-api-key': apiKey } });
    await answer.text();
    if (!answer.ok) throw new Error(`a read was answered ${answer.status}`);
    const tookMs = performance.now() - startedAt;
    times.push(tookMs);
    await delay(Math.max(0, PACE_MS - tookMs));
  }
  return times;
}
