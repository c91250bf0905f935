/**
 * `accept`: acceptances (202) per second of `POST /v2/settle`. They are compared with a bare route, which looks up a
 * key and inserts one row, and with bare starts of an empty workflow on the same Temporal. The three take turns in each
 * round.
 *
 * Screening rejects these settlements right after their acceptance. Acceptance costs the same, and little work is left
 * after each turn. The next turn begins when that work is done.
 */
import { randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import { SANDBOX_NAMES } from '../../domain/sandbox/input.ts';
import { command, EXIT, type Printer } from '../../process/command-line.ts';
import { type Bench, count } from './bench.ts';
import { ratios, spreadOf, tableOf } from './figure.ts';
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

export const accept: Bench = command({
  name: 'accept',
  description: 'Acceptances per second, beside a bare route and bare starts of an empty workflow.',
  takes: {
    rounds: count('--rounds <count>', 'how often each contender is measured', 5),
    turnMs: count('--turn-ms <ms>', 'how long each measurement takes', 1_500),
  },
  run: (printer: Printer, { rounds, turnMs }) =>
    withBenchStack(async (stack) => {
      await Promise.all([
        stack.start('api', 'api/main.ts', 'API ready'),
        stack.start('worker', 'worker/main.ts', 'worker ready'),
      ]);
      const contenders = await Promise.all([acceptance(stack), bareRoute(stack), bareStart(stack)]);
      for (const contender of contenders) {
        await contender.measure(CONNECTIONS[1], WARM_UP_MS);
        await contender.settleDown();
      }
      report(printer, contenders, await takeTurns(printer, contenders, rounds, turnMs));
      return EXIT.done;
    }),
});

/** @returns the measured loads by connections and contender, one per round */
async function takeTurns(
  { warn }: Printer,
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
    warn(`round ${round + 1} of ${rounds}`);
  }
  return found;
}

function report(
  { print, printData }: Printer,
  contenders: readonly Contender[],
  found: ReadonlyMap<string, readonly Load[]>,
): void {
  const [ours] = contenders;
  const loads = CONNECTIONS.flatMap((connections) => {
    const ofRounds = (contender: Contender | undefined, pick: (load: Load) => number) =>
      (found.get(`${connections} ${contender?.name}`) ?? []).map(pick);
    const rate = (contender: Contender | undefined) => ofRounds(contender, ({ perSecond }) => perSecond);
    return contenders.map((contender) => ({
      connections,
      what: contender.name,
      perSecond: rate(contender),
      p50Ms: ofRounds(contender, ({ p50Ms }) => p50Ms),
      p99Ms: ofRounds(contender, ({ p99Ms }) => p99Ms),
      ratio: contender === ours ? undefined : ratios(rate(ours), rate(contender)),
    }));
  });
  print(
    tableOf(
      ['connections', 'what', '/s', 'p50 ms', 'p99 ms', 'ratio'],
      loads.map((load) => [
        ...[String(load.connections), load.what],
        ...[load.perSecond, load.p50Ms, load.p99Ms],
        load.ratio ?? '',
      ]),
    ),
  );
  printData({
    loads: loads.map(({ connections, what, perSecond, p50Ms, p99Ms, ratio }) => ({
      connections,
      what,
      per_second: spreadOf(perSecond),
      p50_ms: spreadOf(p50Ms),
      p99_ms: spreadOf(p99Ms),
      ratio: ratio ? spreadOf(ratio) : null,
    })),
  });
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
