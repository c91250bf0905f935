/** How long a seat rests after a request of low priority, for those at other addresses. */
import { expect, test } from 'vitest';
import { createSeatRest, REST_MAX_MS } from '../../api/http/seat-rest.ts';

function heardAt(...heard: readonly (readonly [atMs: number, address: string])[]) {
  let nowMs = 0;
  const rest = createSeatRest(() => nowMs);
  for (const [atMs, address] of heard) {
    nowMs = atMs;
    rest.heard(address);
  }
  return (atMs: number, address: string, kind: 'read' | 'change', tookMs: number) => {
    nowMs = atMs;
    return rest.after(address, kind, tookMs);
  };
}

test.for([
  [
    'the seat of an address that is alone does not rest',
    [
      [0, 'a'],
      [900, 'a'],
    ],
    [900, 'a', 'read', 20],
    0,
  ],
  [
    'a seat rests as long as its list took while another address is heard',
    [
      [0, 'b'],
      [10, 'a'],
    ],
    [30, 'a', 'read', 20],
    20,
  ],
  [
    'the seat of an address that was heard first rests too',
    [
      [0, 'a'],
      [10, 'b'],
    ],
    [30, 'a', 'read', 20],
    20,
  ],
  [
    'another address counts however often the first was heard since',
    [
      [0, 'b'],
      [10, 'a'],
      [20, 'a'],
    ],
    [30, 'a', 'read', 20],
    20,
  ],
  [
    'another address counts for a second',
    [
      [0, 'b'],
      [10, 'a'],
    ],
    [1_001, 'a', 'read', 20],
    0,
  ],
  [
    'a seat rests three times as long as a change took',
    [
      [0, 'b'],
      [10, 'a'],
    ],
    [30, 'a', 'change', 12],
    36,
  ],
  [
    'a rest has a limit',
    [
      [0, 'b'],
      [10, 'a'],
    ],
    [900, 'a', 'read', 800],
    REST_MAX_MS,
  ],
] as const)('%s', ([, heard, [atMs, address, kind, tookMs], restMs]) => {
  expect(heardAt(...heard)(atMs, address, kind, tookMs)).toBe(restMs);
});
