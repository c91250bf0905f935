/**
 * Contenders take turns in each round, so that what else the machine does affects all of them. A ratio is computed in
 * each round. The CPU time of each thing that was done is shown with it: other load changes it little.
 */
import { loadavg } from 'node:os';
import { Pool } from 'undici';
import type { Printer } from '../../ops/command-line/program.ts';
import { type Cell, percentile, ratios, type Table } from './bench.ts';
import { type CpuMsEach, type Processes, startCpu } from './cpu.ts';

/** What a turn has done, and its figures by the heads of their columns. The first one is compared. */
export type Turn = { readonly done: number; readonly figures: Readonly<Record<string, number>> };

export type Contender = {
  /** The cells before its figures. The last one is its name. */
  readonly labels: readonly string[];
  /** Whose CPU time is counted. */
  readonly processes?: Processes;
  take(): Promise<Turn>;
  /** Waits until nothing of the turn is left. */
  rest?(): Promise<void>;
  readonly against?: readonly Contender[];
};

type Measured = Turn & { readonly cpu: CpuMsEach };

/**
 * The first round is not counted: a new process costs up to three times as much for each call, until V8 has compiled
 * what runs often, which is about two thousand calls.
 *
 * @param labels the heads of the columns before the figures
 */
export async function compare(
  { warn }: Printer,
  { rounds, labels }: { readonly rounds: number; readonly labels: readonly string[] },
  contenders: readonly Contender[],
): Promise<{ readonly table: Table; figuresOf(contender: Contender, head: string): number[] }> {
  const turns = new Map<Contender, Measured[]>(contenders.map((contender) => [contender, []]));
  for (let round = 0; round <= rounds; round += 1) {
    for (const contender of contenders) {
      const cpu = startCpu(contender.processes ?? {});
      const turn = await contender.take();
      if (round > 0) turns.get(contender)?.push({ ...turn, cpu: cpu(turn.done) });
      await contender.rest?.();
    }
    warn(`${round === 0 ? 'warmed up' : `round ${round} of ${rounds}`}, load ${loadavg()[0]?.toFixed(1)}`);
  }
  const figuresOf = (contender: Contender, head: string): number[] =>
    (turns.get(contender) ?? []).flatMap(({ figures }) => figures[head] ?? []);
  return { table: tableOf(labels, turns, figuresOf), figuresOf };
}

function tableOf(
  labels: readonly string[],
  turns: ReadonlyMap<Contender, readonly Measured[]>,
  figuresOf: (contender: Contender, head: string) => number[],
): Table {
  const distinct = (names: readonly string[]): string[] => [...new Set(names)];
  const all = [...turns];
  const heads = distinct(all.flatMap(([, [turn]]) => Object.keys(turn?.figures ?? {})));
  const [first = ''] = heads;
  const processes = distinct(all.flatMap(([, [turn]]) => Object.keys(turn?.cpu ?? {})));
  const compared = distinct(all.flatMap(([{ against = [] }]) => against.map(nameOf)));
  const rows = all.map(([contender, own]): Cell[] => {
    const { against = [] } = contender;
    const cpu = own[0] && Object.keys(own[0].cpu).length > 0 ? own.map((turn) => turn.cpu) : [];
    return [
      ...contender.labels,
      ...heads.map((head) => figuresOf(contender, head)),
      ...compared.map((name) => {
        const other = against.find((each) => nameOf(each) === name);
        return other ? ratios(figuresOf(contender, first), figuresOf(other, first)) : '';
      }),
      cpu.map((each) => Object.values(each).reduce((sum, ms) => sum + ms, 0)),
      ...processes.map((process) => cpu.map((each) => each[process] ?? Number.NaN)),
    ];
  });
  const ratioHeads = compared.map((name) => `÷ ${name}`);
  return { head: [...labels, ...heads, ...ratioHeads, 'CPU ms each', ...processes], rows };
}

const nameOf = ({ labels }: Contender): string => labels.at(-1) ?? '';

/** Calls by a fixed number of callers, each of which makes its next call when the call before is answered. */
export async function load(callers: number, durationMs: number, call: () => Promise<void>): Promise<Turn> {
  const times: number[] = [];
  const startedMs = performance.now();
  const caller = async (): Promise<void> => {
    while (performance.now() < startedMs + durationMs) {
      const askedMs = performance.now();
      await call();
      times.push(performance.now() - askedMs);
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  const perSecond = times.length / ((performance.now() - startedMs) / 1_000);
  const figures = { '/s': perSecond, 'p50 ms': percentile(times, 0.5), 'p99 ms': percentile(times, 0.99) };
  return { done: times.length, figures };
}

export type HttpCall = {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly status: number;
  /** Made anew for each call. */
  readonly headers?: () => Record<string, string>;
  readonly body?: string;
};

/**
 * Makes the call over this many connections. Any other answer than the expected one is an error. It does not use the
 * TypeScript client: the time that a client needs for each answer would be in the figures, of the bare routes too.
 */
export async function loadHttp(
  url: string,
  { method, path, status, headers, body }: HttpCall,
  connections: number,
  durationMs: number,
): Promise<Turn> {
  const http = new Pool(url, { connections });
  const call = async (): Promise<void> => {
    const answer = await http.request({ method, path, body: body ?? null, headers: headers?.() ?? {} });
    await answer.body.dump();
    if (answer.statusCode !== status) throw new Error(`${method} ${path} answered ${answer.statusCode}`);
  };
  return await load(connections, durationMs, call).finally(() => http.close());
}
