/**
 * `npm run timing`: whether the time of a 401 shows if a key never existed or was revoked. Requests with both keys take
 * turns, so that other work on the machine affects both alike. Exits 1 when the answers differ in more than their
 * request id. The times are printed; the reader judges them.
 */
import { z } from 'zod';
import { generateApiKey } from '../../process/api-key.ts';
import { command, EXIT, type Printer, runProgram, standardOutput } from '../../process/command-line.ts';
import { type ValuesOf, wholeNumber, withDefault } from '../../process/command-parameter.ts';
import { API_URL } from '../../scripts/sandbox/command.ts';
import { borrowStack } from '../../scripts/stack/borrowed.ts';
import { createRevokedKey } from '../fuzz/caller.ts';

const WARM_UP = 100;
const PATH = '/v2/payment-methods';
const QUANTILES = [0.05, 0.25, 0.5, 0.75, 0.95] as const;
const KINDS = ['unknown', 'revoked'] as const;

type Kind = (typeof KINDS)[number];
type Measured = { readonly kind: Kind; readonly ms: number; readonly answer: string };

/** One request after another. The order of the two kinds changes in every round. */
async function measure(baseUrl: string, keys: Readonly<Record<Kind, string>>, count: number): Promise<Measured[]> {
  const measured: Measured[] = [];
  for (let round = 0; round < count; round += 1) {
    for (const kind of round % 2 === 0 ? KINDS : KINDS.toReversed()) {
      const startedAt = performance.now();
      const answer = await fetch(baseUrl + PATH, { headers: { 'x-api-key': keys[kind] } });
      const text = await answer.text();
      measured.push({ kind, ms: performance.now() - startedAt, answer: `${answer.status} ${withoutId(text)}` });
    }
  }
  return measured;
}

const Problem = z.looseObject({ request_id: z.string() });

function withoutId(text: string): string {
  const { request_id: _id, ...same } = Problem.parse(JSON.parse(text));
  return JSON.stringify(same);
}

/** @returns whether all answers were equal */
function report(measured: readonly Measured[], print: Printer['print']): boolean {
  const timesOf = (kind: Kind) =>
    measured.flatMap((each) => (each.kind === kind ? [each.ms] : [])).sort((a, b) => a - b);
  const figures = new Map(
    KINDS.map((kind) => [kind, QUANTILES.map((quantile) => quantileOf(timesOf(kind), quantile))]),
  );
  print(`${measured.length / KINDS.length} requests of each kind, in ms`);
  print(['key'.padEnd(10), ...QUANTILES.map((quantile) => `p${quantile * 100}`.padStart(8))].join(''));
  for (const [kind, row] of figures) print([kind.padEnd(10), ...row.map((ms) => ms.toFixed(3).padStart(8))].join(''));
  const [unknown = 0, revoked = 0] = KINDS.map((kind) => quantileOf(timesOf(kind), 0.5));
  const spread = quantileOf(timesOf('unknown'), 0.75) - quantileOf(timesOf('unknown'), 0.25);
  print(
    `The medians differ by ${Math.abs(unknown - revoked).toFixed(3)} ms. The middle half of the times for unknown keys spans ${spread.toFixed(3)} ms.`,
  );
  const answers = new Set(measured.map(({ answer }) => answer));
  print(
    answers.size === 1 ? `Every answer was ${[...answers].join()}` : `The answers differ: ${[...answers].join('\n')}`,
  );
  return answers.size === 1;
}

function quantileOf(sorted: readonly number[], quantile: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * quantile))] ?? 0;
}

const TAKES = {
  requests: withDefault('--requests <n>', 'how many of each kind', wholeNumber(1, 1_000_000), '1000'),
  url: API_URL,
};

const program = command({
  name: 'timing',
  description: 'Measures whether the time of a 401 shows if a key never existed or was revoked.',
  takes: TAKES,
  json: false,
  run: async ({ print }: Printer, { requests, url }: ValuesOf<typeof TAKES>) => {
    const stack = await borrowStack(url, print);
    try {
      const keys = { unknown: generateApiKey('local-sandbox'), revoked: await createRevokedKey(stack.baseUrl) };
      await measure(stack.baseUrl, keys, WARM_UP);
      return report(await measure(stack.baseUrl, keys, requests), print) ? EXIT.done : EXIT.refused;
    } finally {
      await stack.giveBack();
    }
  },
});

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) => act(printer));
