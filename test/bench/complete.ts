/**
 * `complete`: settlements per second from `POST /v2/settle` through the card processor's signed event to `settled`.
 * They are compared with a bare workflow on the same servers: one signal, and three local activities that insert a row
 * each.
 *
 * A turn has two parts. First all settlements (or workflows) are started, until all of them wait for money (or for the
 * signal). Then all of them are paid (or signalled), until the last one is stored as settled (or done). The report also
 * shows the CPU time of each, because other work on the machine changes it little.
 */
import { randomUUID } from 'node:crypto';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { type Bench, count, inParallel } from './bench.ts';
import { type CpuMsEach, type Processes, startCpu } from './cpu.ts';
import { ratios, spreadOf, tableOf } from './figure.ts';
import { createPayer } from './payer.ts';
import { type BenchStack, withBenchStack } from './stack.ts';
import { waitUntil } from './wait.ts';

const AT_ONCE = 16;
const WARM_UP = 20;

type Contender = {
  readonly name: string;
  /** @returns the id of a new settlement or workflow */
  begin(): Promise<string>;
  /** Sends the event or the signal that it waits for. */
  resume(id: string): Promise<void>;
  /** How many, in all turns together, have reached the wait. */
  countWaiting(): Promise<number>;
  /** How many, in all turns together, have ended. */
  countEnded(): Promise<number>;
};

type Turn = { readonly wholePerSecond: number; readonly secondPartPerSecond: number };
type Measured = Turn & { readonly cpuMsEach: CpuMsEach };

export const complete: Bench = command({
  name: 'complete',
  description: 'Settlements per second from acceptance to settled, compared with a bare workflow.',
  takes: {
    rounds: count('--rounds <count>', 'how often each contender is measured', 5),
    settlements: count('--settlements <count>', 'how many settlements a turn has', 100),
  },
  run: (printer: Printer, { rounds, settlements }) =>
    withBenchStack(async (stack) => {
      const api = await stack.start('api', 'api/main.ts', 'API ready');
      const worker = await stack.start('worker', 'worker/main.ts', 'worker ready');
      const bareWorker = await stack.start('bare-worker', 'test/bench/bare-worker.ts', 'bare worker ready');
      const processes = { API: [api.pid], worker: [worker.pid, bareWorker.pid], ...stack.servers };
      const contenders = [await settlement(stack), bareWorkflow(stack)];
      for (const contender of contenders) await takeTurn(contender, WARM_UP);
      const found = new Map<Contender, Measured[]>(contenders.map((contender) => [contender, []]));
      for (let round = 0; round < rounds; round += 1) {
        for (const contender of contenders)
          found.get(contender)?.push(await measureTurn(contender, settlements, processes));
        printer.warn(`round ${round + 1} of ${rounds}`);
      }
      report(printer, found);
      return EXIT.done;
    }),
});

async function measureTurn(contender: Contender, size: number, processes: Processes): Promise<Measured> {
  const cpu = startCpu(processes);
  const turn = await takeTurn(contender, size);
  return { ...turn, cpuMsEach: cpu(size) };
}

async function takeTurn(contender: Contender, size: number): Promise<Turn> {
  const [waitingBefore, endedBefore] = [await contender.countWaiting(), await contender.countEnded()];
  const ids: string[] = [];
  const beginMs = performance.now();
  await inParallel(size, AT_ONCE, async () => {
    ids.push(await contender.begin());
  });
  await waitUntil(
    `the wait of every ${contender.name}`,
    async () => (await contender.countWaiting()) >= waitingBefore + size,
  );
  const resumeMs = performance.now();
  await inParallel(size, AT_ONCE, (index) => contender.resume(ids[index] ?? ''));
  await waitUntil(
    `the end of every ${contender.name}`,
    async () => (await contender.countEnded()) >= endedBefore + size,
  );
  const endMs = performance.now();
  const perSecond = (fromMs: number) => size / ((endMs - fromMs) / 1_000);
  return { wholePerSecond: perSecond(beginMs), secondPartPerSecond: perSecond(resumeMs) };
}

function report({ print, printData }: Printer, found: ReadonlyMap<Contender, readonly Measured[]>): void {
  const [ours = []] = found.values();
  const contenders = [...found].map(([{ name }, turns]) => {
    const ofTurns = (pick: (turn: Turn) => number) => ({
      perSecond: turns.map(pick),
      ratio: turns === ours ? undefined : ratios(ours.map(pick), turns.map(pick)),
    });
    const processes = Object.keys(ours[0]?.cpuMsEach ?? {});
    const cpuMs = processes.map(
      (process) => [process, turns.map(({ cpuMsEach }) => cpuMsEach[process] ?? Number.NaN)] as const,
    );
    return {
      what: name,
      whole: ofTurns((turn) => turn.wholePerSecond),
      secondPart: ofTurns((turn) => turn.secondPartPerSecond),
      cpuMs,
    };
  });
  const processes = contenders[0]?.cpuMs.map(([process]) => process) ?? [];
  print(
    tableOf(
      ['what', 'whole life /s', 'ratio', 'from the event to the end /s', 'ratio'],
      contenders.map(({ what, whole, secondPart }) => [
        what,
        ...[whole, secondPart].flatMap(({ perSecond, ratio }) => [perSecond, ratio ?? '']),
      ]),
    ),
  );
  print(
    tableOf(
      ['CPU ms each', ...processes],
      contenders.map(({ what, cpuMs }) => [what, ...cpuMs.map(([, ms]) => ms)]),
    ),
  );
  const rateData = ({ perSecond, ratio }: (typeof contenders)[number]['whole']) => ({
    per_second: spreadOf(perSecond),
    ratio: ratio ? spreadOf(ratio) : null,
  });
  printData({
    contenders: contenders.map(({ what, whole, secondPart, cpuMs }) => ({
      what,
      whole_life: rateData(whole),
      from_event_to_end: rateData(secondPart),
      cpu_ms_each: Object.fromEntries(cpuMs.map(([process, ms]) => [process.toLowerCase(), spreadOf(ms)])),
    })),
  });
}

/** Counts in the database, because that costs much less than the work that is measured. */
const counter =
  ({ database }: BenchStack, query: string) =>
  async (): Promise<number> =>
    Number((await database.query(query)).rows[0].count);

async function settlement(stack: BenchStack): Promise<Contender> {
  const payer = await createPayer(stack, 'Marcia Brown');
  const reached = (status: string) =>
    counter(stack, `SELECT count(*) FROM settlement_transitions WHERE to_status = '${status}'`);
  return {
    name: 'card settlement',
    begin: payer.settle,
    resume: payer.pay,
    countWaiting: reached('awaiting_funds'),
    countEnded: reached('settled'),
  };
}

function bareWorkflow(stack: BenchStack): Contender {
  const { client } = stack.temporal;
  const stored = (step: number) => counter(stack, `SELECT count(*) FROM bare_step WHERE step = ${step}`);
  const begin = async (): Promise<string> => {
    const workflowId = `bench:${randomUUID()}`;
    await client.workflow.start('bare', { taskQueue: 'bench-bare', workflowId, args: [workflowId] });
    return workflowId;
  };
  return {
    name: 'bare workflow',
    begin,
    resume: (id) => client.workflow.getHandle(id).signal('resumed'),
    countWaiting: stored(1),
    countEnded: stored(3),
  };
}
