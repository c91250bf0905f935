/**
 * Contenders take turns in each round, so that what else the machine does affects all of them. A ratio is computed in
 * each round. The CPU time of a call is shown with it: other load changes it little.
 */
import { loadavg } from 'node:os';
import { Pool } from 'undici';
import type { Printer } from '../../ops/command-line/program.ts';
import { readStack } from '../../process/local/running-stack.ts';
import { report } from './bench.ts';
import { type CpuMsEach, type Processes, startCpu } from './cpu.ts';
import { ratios, spreadOf } from './figure.ts';
import { type Load, load } from './load.ts';

export type Contender = {
  readonly name: string;
  /** What its calls use. PostgreSQL is added. */
  readonly processes: Processes;
  /** Makes calls by this many callers. */
  measure(connections: number, durationMs: number): Promise<Load>;
  /** Waits until the work that a turn started is done. */
  settleDown?(): Promise<void>;
};

type Turn = Load & { readonly cpuMsEach: CpuMsEach };
/** The turns by connections and contender, one for each round. */
export type Turns = ReadonlyMap<string, readonly Turn[]>;

export type Schedule = {
  readonly connections: readonly number[];
  readonly rounds: number;
  readonly turnMs: number;
};

/**
 * A new process costs up to three times as much for each call, until V8 has compiled what runs often: about two
 * thousand calls.
 */
const WARM_UP_MS = 6_000;
const keyOf = (connections: number, { name }: Contender): string => `${connections} ${name}`;

/** Warms every contender up, then measures them in turns. */
export async function takeTurns(
  { warn }: Printer,
  contenders: readonly Contender[],
  { connections: allConnections, rounds, turnMs }: Schedule,
): Promise<Turns> {
  for (const contender of contenders) {
    await contender.measure(Math.max(...allConnections), WARM_UP_MS);
    await contender.settleDown?.();
  }
  const turns = new Map<string, Turn[]>();
  for (let round = 0; round < rounds; round += 1) {
    for (const connections of allConnections) {
      for (const contender of contenders) {
        const key = keyOf(connections, contender);
        turns.set(key, [...(turns.get(key) ?? []), await takeTurn(contender, connections, turnMs)]);
        await contender.settleDown?.();
      }
    }
    warn(`round ${round + 1} of ${rounds}, load ${loadavg()[0]?.toFixed(1)}`);
  }
  return turns;
}

async function takeTurn(contender: Contender, connections: number, turnMs: number): Promise<Turn> {
  const PostgreSQL = [readStack()?.processes['PostgreSQL']?.pid ?? []].flat();
  const cpu = startCpu({ ...contender.processes, PostgreSQL });
  const measured = await contender.measure(connections, turnMs);
  return { ...measured, cpuMsEach: cpu(measured.calls) };
}

/**
 * Prints and stores the turns.
 *
 * @param ratiosOf the contenders whose rate is divided by those of the others
 */
export function reportTurns(
  printer: Printer,
  bench: string,
  found: { readonly contenders: readonly Contender[]; readonly schedule: Schedule; readonly turns: Turns },
  ratiosOf: { readonly ours: readonly string[]; readonly bare: readonly string[] },
): void {
  const { contenders, schedule, turns } = found;
  const figures = schedule.connections.flatMap((connections) => {
    const rateOf = (name: string): number[] =>
      (turns.get(`${connections} ${name}`) ?? []).map(({ perSecond }) => perSecond);
    return contenders.map((contender) => {
      const own = turns.get(keyOf(connections, contender)) ?? [];
      const processes = Object.keys(own[0]?.cpuMsEach ?? {});
      const bare = ratiosOf.ours.includes(contender.name) ? ratiosOf.bare : [];
      return {
        connections,
        what: contender.name,
        perSecond: own.map(({ perSecond }) => perSecond),
        p50Ms: own.map(({ p50Ms }) => p50Ms),
        p99Ms: own.map(({ p99Ms }) => p99Ms),
        cpuMs: processes.map(
          (process) => [process, own.map(({ cpuMsEach }) => cpuMsEach[process] ?? Number.NaN)] as const,
        ),
        ratios: bare.map((name) => [name, ratios(rateOf(contender.name), rateOf(name))] as const),
      };
    });
  });
  const tables = [
    {
      head: ['connections', 'what', '/s', 'p50 ms', 'p99 ms', ...ratiosOf.bare.map((name) => `÷ ${name}`)],
      rows: figures.map((figure) => [
        ...[String(figure.connections), figure.what, figure.perSecond, figure.p50Ms, figure.p99Ms],
        ...ratiosOf.bare.map((_name, index) => figure.ratios[index]?.[1] ?? ''),
      ]),
    },
    {
      head: ['connections', 'what', 'CPU ms a call'],
      rows: figures.map(({ connections, what, cpuMs: each }) => [
        ...[String(connections), what],
        each.map(([process, ms]) => `${process} ${spreadOf(ms).median.toFixed(2)}`).join(', '),
      ]),
    },
  ];
  report(printer, bench, tables, {
    figures: figures.map(({ connections, what, perSecond, p50Ms, p99Ms, cpuMs: each, ratios: ofBare }) => ({
      ...{ connections, what, per_second: spreadOf(perSecond), p50_ms: spreadOf(p50Ms), p99_ms: spreadOf(p99Ms) },
      cpu_ms_each: Object.fromEntries(each.map(([process, ms]) => [process.toLowerCase(), spreadOf(ms)])),
      ratios: Object.fromEntries(ofBare.map(([name, values]) => [name, spreadOf(values)])),
    })),
  });
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
): Promise<Load> {
  const http = new Pool(url, { connections });
  const call = async (): Promise<void> => {
    const answer = await http.request({ method, path, body: body ?? null, headers: headers?.() ?? {} });
    await answer.body.dump();
    if (answer.statusCode !== status) throw new Error(`${method} ${path} answered ${answer.statusCode}`);
  };
  return await load(connections, durationMs, call).finally(() => http.close());
}
