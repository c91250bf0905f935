/**
 * `npm run timing`: whether the time of a 401 shows if a key never existed or was revoked. Requests with both keys take
 * turns, so that other work on the machine affects both alike. Exits 1 when the answers differ in more than their
 * request id. The times are printed; the reader judges them.
 *
 * Options: `--requests <n>` of each kind (1000), `--url <API>`; by default the stack that `npm start` runs in this
 * clone, or one that is started for it.
 */
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { generateApiKey } from '../../api/http/api-key.ts';
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
function report(measured: readonly Measured[]): boolean {
  const timesOf = (kind: Kind) =>
    measured.flatMap((each) => (each.kind === kind ? [each.ms] : [])).sort((a, b) => a - b);
  const figures = new Map(
    KINDS.map((kind) => [kind, QUANTILES.map((quantile) => quantileOf(timesOf(kind), quantile))]),
  );
  console.log(`${measured.length / KINDS.length} requests of each kind, in ms`);
  console.log(['key'.padEnd(10), ...QUANTILES.map((quantile) => `p${quantile * 100}`.padStart(8))].join(''));
  for (const [kind, row] of figures)
    console.log([kind.padEnd(10), ...row.map((ms) => ms.toFixed(3).padStart(8))].join(''));
  const [unknown = 0, revoked = 0] = KINDS.map((kind) => quantileOf(timesOf(kind), 0.5));
  const spread = quantileOf(timesOf('unknown'), 0.75) - quantileOf(timesOf('unknown'), 0.25);
  console.log(
    `The medians differ by ${Math.abs(unknown - revoked).toFixed(3)} ms. The middle half of the times for unknown keys spans ${spread.toFixed(3)} ms.`,
  );
  const answers = new Set(measured.map(({ answer }) => answer));
  console.log(
    answers.size === 1 ? `Every answer was ${[...answers].join()}` : `The answers differ: ${[...answers].join('\n')}`,
  );
  return answers.size === 1;
}

function quantileOf(sorted: readonly number[], quantile: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * quantile))] ?? 0;
}

const { values } = parseArgs({ options: { requests: { type: 'string', default: '1000' }, url: { type: 'string' } } });
const requests = Number(values.requests);

if (!Number.isSafeInteger(requests) || requests < 1) {
  console.error('Usage: npm run timing -- [--requests <n>] [--url <API>]');
  process.exitCode = 1;
} else {
  const stack = await borrowStack(values.url, console.log);
  try {
    const keys = { unknown: generateApiKey('local-sandbox'), revoked: await createRevokedKey(stack.baseUrl) };
    await measure(stack.baseUrl, keys, WARM_UP);
    process.exitCode = report(await measure(stack.baseUrl, keys, requests)) ? 0 : 1;
  } finally {
    await stack.giveBack();
  }
}
