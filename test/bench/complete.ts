/**
 * `complete`: settlements a second from `POST /v2/settle` over the card processor's signed event to `settled`, beside a
 * bare workflow with one signal and three local activities that insert a row each, on the same servers.
 *
 * A turn has two parts: as many as the turn has are begun and waited for until all wait for their money, or their
 * signal; then all are paid, or rung, and waited for until the last has stored its end. The CPU time of each is told
 * beside, since a machine with other work leaves that as it is.
 */
import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { readStack } from '../../process/running-stack.ts';
import { type Bench, inParallel } from './bench.ts';
import { cpuMs } from './cpu.ts';
import { figure, printTable, ratios } from './figure.ts';
import { type Ground, onOwnGround } from './ground.ts';
import { untilTrue } from './load.ts';
import { createPayer } from './payer.ts';

const AT_ONCE = 16;
const WARM_UP = 20;

type Contender = {
  readonly name: string;
  /** @returns its id */
  begin(): Promise<string>;
  ring(id: string): Promise<void>;
  /** How many have come so far, in all turns. */
  countWaiting(): Promise<number>;
  countOver(): Promise<number>;
};

type Turn = { readonly wholePerSecond: number; readonly secondPartPerSecond: number };
/** Who uses the CPU, by name. */
type Users = Readonly<Record<string, readonly number[]>>;
type Measured = Turn & { readonly cpuMsEach: Readonly<Record<string, number>> };

export const complete: Bench = {
  usage: 'complete [--rounds <n>] [--settlements <n>]   (5, 100)',
  async run(args) {
    const options = {
      rounds: { type: 'string', default: '5' },
      settlements: { type: 'string', default: '100' },
    } as const;
    const { values } = parseArgs({ args: [...args], options });
    const count = Number(values.settlements);
    return await onOwnGround(async (ground) => {
      const api = await ground.start('api', 'api/main.ts', 'API ready');
      const worker = await ground.start('worker', 'worker/main.ts', 'worker ready');
      const bareWorker = await ground.start('bare-worker', 'test/bench/bare-worker.ts', 'bare worker ready');
      const servers = readStack()?.processes ?? {};
      const pidsOf = (name: string) => [servers[name]?.pid ?? []].flat();
      const users = {
        API: [api.pid],
        worker: [worker.pid, bareWorker.pid],
        Temporal: pidsOf('Temporal'),
        PostgreSQL: pidsOf('PostgreSQL'),
      };
      const contenders = [await settlement(ground), bareWorkflow(ground)];
      for (const contender of contenders) await takeTurn(contender, WARM_UP);
      const found = new Map<Contender, Measured[]>(contenders.map((contender) => [contender, []]));
      for (let round = 0; round < Number(values.rounds); round += 1) {
        for (const contender of contenders) found.get(contender)?.push(await measureTurn(contender, count, users));
        console.log(`round ${round + 1} of ${values.rounds}`);
      }
      report(found);
      return 0;
    });
  },
};

async function measureTurn(contender: Contender, count: number, users: Users): Promise<Measured> {
  const usedMs = () => Object.entries(users).map(([name, pids]) => [name, cpuMs(pids)] as const);
  const before = new Map(usedMs());
  const turn = await takeTurn(contender, count);
  return {
    ...turn,
    cpuMsEach: Object.fromEntries(
      usedMs().map(([name, ms]) => [name, (ms - (before.get(name) ?? Number.NaN)) / count]),
    ),
  };
}

async function takeTurn(contender: Contender, count: number): Promise<Turn> {
  const [waitedBefore, overBefore] = [await contender.countWaiting(), await contender.countOver()];
  const ids: string[] = [];
  const begunMs = performance.now();
  await inParallel(count, AT_ONCE, async () => {
    ids.push(await contender.begin());
  });
  await untilTrue(
    `the wait of every ${contender.name}`,
    async () => (await contender.countWaiting()) >= waitedBefore + count,
  );
  const rungMs = performance.now();
  await inParallel(count, AT_ONCE, (index) => contender.ring(ids[index] ?? ''));
  await untilTrue(
    `the end of every ${contender.name}`,
    async () => (await contender.countOver()) >= overBefore + count,
  );
  const overMs = performance.now();
  const perSecond = (fromMs: number) => count / ((overMs - fromMs) / 1_000);
  return { wholePerSecond: perSecond(begunMs), secondPartPerSecond: perSecond(rungMs) };
}

function report(found: ReadonlyMap<Contender, readonly Measured[]>): void {
  const [ours = []] = found.values();
  const rows = [...found].map(([{ name }, turns]) => {
    const columns = [(turn: Turn) => turn.wholePerSecond, (turn: Turn) => turn.secondPartPerSecond].flatMap((pick) => [
      figure(turns.map(pick)),
      turns === ours ? '' : figure(ratios(ours.map(pick), turns.map(pick))),
    ]);
    return [name, ...columns];
  });
  printTable(['what', 'whole life /s', 'settlement to it', 'from the event to the end /s', 'settlement to it'], rows);
  const users = Object.keys(ours[0]?.cpuMsEach ?? {});
  const cpuRows = [...found].map(([{ name }, turns]) => [
    name,
    ...users.map((user) => figure(turns.map(({ cpuMsEach }) => cpuMsEach[user] ?? Number.NaN))),
  ]);
  printTable(['CPU ms each', ...users], cpuRows);
}

/** Asks the database alone, as it is cheaper than what it waits for. */
const counter =
  ({ database }: Ground, query: string) =>
  async (): Promise<number> =>
    Number((await database.query(query)).rows[0].count);

async function settlement(ground: Ground): Promise<Contender> {
  const payer = await createPayer(ground, 'Marcia Brown', AT_ONCE);
  const reached = (status: string) =>
    counter(ground, `SELECT count(*) FROM settlement_transitions WHERE to_status = '${status}'`);
  return {
    name: 'card settlement',
    begin: payer.settle,
    ring: payer.pay,
    countWaiting: reached('awaiting_funds'),
    countOver: reached('settled'),
  };
}

function bareWorkflow(ground: Ground): Contender {
  const { client } = ground.temporal;
  const stored = (step: number) => counter(ground, `SELECT count(*) FROM bare_step WHERE step = ${step}`);
  const begin = async (): Promise<string> => {
    const workflowId = `bench:${randomUUID()}`;
    await client.workflow.start('bare', { taskQueue: 'bench-bare', workflowId, args: [workflowId] });
    return workflowId;
  };
  return {
    name: 'bare workflow',
    begin,
    ring: (id) => client.workflow.getHandle(id).signal('rung'),
    countWaiting: stored(1),
    countOver: stored(3),
  };
}
