/**
 * `accept`: acceptances (202) per second of `POST /v2/settle`. They are compared with a bare route, which looks up a key
 * and inserts one row, and with bare starts of an empty workflow on the same Temporal. The three take turns in each round.
 *
 * Screening rejects these settlements right after their acceptance. Acceptance costs the same, and little work is left
 * after each turn. The next turn begins when that work is done.
 */
import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { Pool } from 'undici';
import { SANDBOX_NAMES } from '../../domain/sandbox/input.ts';
import type { Bench } from './bench.ts';
import { figure, printTable, ratios } from './figure.ts';
import { type Load, load } from './load.ts';
import { createPayer } from './payer.ts';
import { type BenchStack, withBenchStack } from './stack.ts';
import { waitUntil } from './wait.ts';

const CONNECTIONS = [1, 16, 64] as const;
const ACCEPTED = 202;
const WARM_UP_MS = 2_000;
/** No worker polls this queue, so these workflows stay as they are until their namespace is deleted. */
const IDLE_TASK_QUEUE = 'bench-idle';

type Contender = {
  readonly name: string;
  measure(connections: number, durationMs: number): Promise<Load>;
  /** Waits until the work that the turn started is done. */
  settleDown(): Promise<void>;
};

export const accept: Bench = {
  usage: 'accept [--rounds <n>] [--turn-ms <n>]   (5, 1500)',
  async run(args) {
    const options = {
      rounds: { type: 'string', default: '5' },
      'turn-ms': { type: 'string', default: '1500' },
    } as const;
    const { values } = parseArgs({ args: [...args], options });
    return await withBenchStack(async (stack) => {
      await Promise.all([
        stack.start('api', 'api/main.ts', 'API ready'),
        stack.start('worker', 'worker/main.ts', 'worker ready'),
      ]);
      const contenders = await Promise.all([acceptance(stack), bareRoute(stack), bareStart(stack)]);
      for (const contender of contenders) {
        await contender.measure(CONNECTIONS[1], WARM_UP_MS);
        await contender.settleDown();
      }
      report(contenders, await takeTurns(contenders, Number(values.rounds), Number(values['turn-ms'])));
      return 0;
    });
  },
};

/** @returns the measured loads by connections and contender, one per round */
async function takeTurns(
  contenders: readonly Contender[],
  rounds: number,
  turnMs: number,
): Promise<Map<string, Load[]>> {
  const found = new Map<string, Load[]>();
  for (let round = 0; round < rounds; round += 1) {
    for (const connections of CONNECTIONS) {
      for (const contender of contenders) {
        const key = `${connections} ${contender.name}`;
        found.set(key, [...(found.get(key) ?? []), await contender.measure(connections, turnMs)]);
        await contender.settleDown();
      }
    }
    console.log(`round ${round + 1} of ${rounds}`);
  }
  return found;
}

function report(contenders: readonly Contender[], found: ReadonlyMap<string, readonly Load[]>): void {
  const rows = CONNECTIONS.flatMap((connections) => {
    const ofRounds = (contender: Contender | undefined, pick: (load: Load) => number) =>
      (found.get(`${connections} ${contender?.name}`) ?? []).map(pick);
    const rate = (contender: Contender | undefined) => ofRounds(contender, ({ perSecond }) => perSecond);
    const [ours] = contenders;
    return contenders.map((contender) => [
      String(connections),
      contender.name,
      figure(rate(contender)),
      figure(ofRounds(contender, ({ p50Ms }) => p50Ms)),
      figure(ofRounds(contender, ({ p99Ms }) => p99Ms)),
      contender === ours ? '' : figure(ratios(rate(ours), rate(contender))),
    ]);
  });
  printTable(['connections', 'what', '/s', 'p50 ms', 'p99 ms', 'ratio'], rows);
}

async function acceptance(stack: BenchStack): Promise<Contender> {
  const payer = await createPayer(stack, SANDBOX_NAMES.screeningHit, 1);
  await payer.close();
  const isDone = async (): Promise<boolean> => {
    const { rows } = await stack.database.query(
      "SELECT NOT EXISTS (SELECT FROM outbox) AND NOT EXISTS (SELECT FROM settlements WHERE status = 'accepted') AS done",
    );
    return rows[0].done;
  };
  return {
    name: '`POST /v2/settle`',
    measure: (connections, durationMs) => post(stack.apiUrl, '/v2/settle', payer, connections, durationMs),
    settleDown: () => waitUntil('the end of every accepted settlement', isDone, { everyMs: 200 }),
  };
}

async function bareRoute(stack: BenchStack): Promise<Contender> {
  const { log } = await stack.start('bare-route', 'test/bench/bare-route.ts', 'for the benchmark');
  const url = /http:\S+/.exec(log)?.[0] ?? '';
  const body = { apiKey: 'bench', settleBody: JSON.stringify({ amount: '250.00', corridor: 'US-JM', metadata: {} }) };
  return {
    name: 'bare route: lookup and INSERT',
    measure: (connections, durationMs) => post(url, '/bare', body, connections, durationMs),
    settleDown: async () => undefined,
  };
}

async function post(
  url: string,
  path: string,
  { apiKey, settleBody }: { readonly apiKey: string; readonly settleBody: string },
  connections: number,
  durationMs: number,
): Promise<Load> {
  const http = new Pool(url, { connections });
  const call = async (): Promise<void> => {
    const headers = { 'content-type': 'application/json', 'x-api-key': apiKey, 'idempotency-key': randomUUID() };
    const { statusCode, body } = await http.request({ method: 'POST', path, body: settleBody, headers });
    await body.dump();
    if (statusCode !== ACCEPTED) throw new Error(`POST ${path} answered ${statusCode}`);
  };
  return await load(connections, durationMs, call).finally(() => http.close());
}

async function bareStart({ temporal }: BenchStack): Promise<Contender> {
  const call = async (): Promise<void> => {
    await temporal.client.workflow.start('empty', { taskQueue: IDLE_TASK_QUEUE, workflowId: `bench:${randomUUID()}` });
  };
  return {
    name: 'bare `workflow.start`',
    measure: (connections, durationMs) => load(connections, durationMs, call),
    settleDown: async () => undefined,
  };
}
