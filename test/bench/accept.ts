/**
 * `accept`: 202s a second from `POST /v2/settle`, beside a bare route that looks up a key and inserts one row, and
 * beside bare starts of an empty workflow on the same Temporal. The contenders take turns in each round.
 *
 * The settlements are ones that screening refuses after they were accepted: what acceptance costs is the same, and the
 * work that is left after each turn, which is waited for, is short.
 */
import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { Pool } from 'undici';
import { SANDBOX_NAMES } from '../../domain/recipient.ts';
import type { Bench } from './bench.ts';
import { figure, printTable, ratios } from './figure.ts';
import { type Ground, onOwnGround } from './ground.ts';
import { type Load, load, untilTrue } from './load.ts';
import { createPayer } from './payer.ts';

const CONNECTIONS = [1, 16, 64] as const;
const ACCEPTED = 202;
const WARM_UP_MS = 2_000;
/** Nobody polls it: the workflows stay as they are until their namespace is deleted. */
const IDLE_TASK_QUEUE = 'bench-idle';

type Contender = {
  readonly name: string;
  measure(connections: number, durationMs: number): Promise<Load>;
  /** Waits until what the turn began is over. */
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
    return await onOwnGround(async (ground) => {
      await Promise.all([
        ground.start('api', 'api/main.ts', 'API ready'),
        ground.start('worker', 'worker/main.ts', 'worker ready'),
      ]);
      const contenders = await Promise.all([acceptance(ground), bareRoute(ground), bareStart(ground)]);
      for (const contender of contenders) {
        await contender.measure(CONNECTIONS[1], WARM_UP_MS);
        await contender.settleDown();
      }
      report(contenders, await takeTurns(contenders, Number(values.rounds), Number(values['turn-ms'])));
      return 0;
    });
  },
};

/** Every load that was measured, by connections and contender. */
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
  printTable(['connections', 'what', '/s', 'p50 ms', 'p99 ms', 'settle to it'], rows);
}

async function acceptance(ground: Ground): Promise<Contender> {
  const payer = await createPayer(ground, SANDBOX_NAMES.screeningHit, 1);
  await payer.close();
  const isOver = async (): Promise<boolean> => {
    const { rows } = await ground.database.query(
      "SELECT NOT EXISTS (SELECT FROM outbox) AND NOT EXISTS (SELECT FROM settlements WHERE status = 'accepted') AS over",
    );
    return rows[0].over;
  };
  return {
    name: '`POST /v2/settle`',
    measure: (connections, durationMs) => posting(ground.apiUrl, '/v2/settle', payer, connections, durationMs),
    settleDown: () => untilTrue('the end of what was accepted', isOver, { everyMs: 200 }),
  };
}

async function bareRoute(ground: Ground): Promise<Contender> {
  const { log } = await ground.start('bare-route', 'test/bench/bare-route.ts', 'for the benchmark');
  const url = /http:\S+/.exec(log)?.[0] ?? '';
  const body = { apiKey: 'bench', settleBody: JSON.stringify({ amount: '250.00', corridor: 'US-JM', metadata: {} }) };
  return {
    name: 'bare route: lookup and INSERT',
    measure: (connections, durationMs) => posting(url, '/bare', body, connections, durationMs),
    settleDown: async () => undefined,
  };
}

async function posting(
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

async function bareStart({ temporal }: Ground): Promise<Contender> {
  const call = async (): Promise<void> => {
    await temporal.client.workflow.start('empty', { taskQueue: IDLE_TASK_QUEUE, workflowId: `bench:${randomUUID()}` });
  };
  return {
    name: 'bare `workflow.start`',
    measure: (connections, durationMs) => load(connections, durationMs, call),
    settleDown: async () => undefined,
  };
}
