/** How long a seat rests after a request of low priority, for those at other addresses. */
import { expect, test } from 'vitest';
import { createSeatRest, REST_MAX_MS } from '../../api/http/seat-rest.ts';

type Heard = readonly { readonly atMs: number; readonly address: string }[];

const a0 = { atMs: 0, address: 'a' };
const b0 = { atMs: 0, address: 'b' };
const a10 = { atMs: 10, address: 'a' };
const b10 = { atMs: 10, address: 'b' };
const list = { atMs: 30, kind: 'read', tookMs: 20 } as const;

/** The rest after a request of the address `a` that ends at `atMs`. */
function restAfter(heard: Heard, { atMs, kind, tookMs }: { atMs: number; kind: 'read' | 'change'; tookMs: number }) {
  let nowMs = 0;
  const rest = createSeatRest(() => nowMs);
  for (const one of heard) {
    nowMs = one.atMs;
    rest.heard(one.address);
  }
  nowMs = atMs;
  return rest.after('a', kind, tookMs);
}

test.for([
  ['the seat of an address that is alone does not rest', [a0, a10], list, 0],
  ['a seat rests as long as its list took while another address is heard', [b0, a10], list, 20],
  ['the seat of an address that was heard first rests too', [a0, b10], list, 20],
  ['another address counts however often the first was heard since', [b0, a10, { ...a10, atMs: 20 }], list, 20],
  ['another address counts for a second', [b0, a10], { ...list, atMs: 1_001 }, 0],
  ['a seat rests three times as long as a change took', [b0, a10], { ...list, kind: 'change', tookMs: 12 }, 36],
  ['a rest has a limit', [b0, a10], { ...list, atMs: 900, tookMs: 800 }, REST_MAX_MS],
] as const)('%s', ([, heard, request, restMs]) => {
  expect(restAfter(heard, request)).toBe(restMs);
});
