/** Seats are taken in turn: what one tenant's single request waits for, and that no seat is idle meanwhile. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createTurns, type TurnLimits, type Turns } from '../../db/turns.ts';
import { property } from '../support/property.ts';

const LIMITS: TurnLimits = { seats: 2, seatsOfTenant: 2, waitingMaxOfTenant: 100, waitingMax: 1_000 };

/** Records in which order the tenants begin. */
function open(limits: Partial<TurnLimits> = {}) {
  const turns = createTurns({ ...LIMITS, ...limits });
  const begun: string[] = [];
  const take = (tenant: string, times = 1) =>
    Array.from({ length: times }, () => turns.take(tenant, () => void begun.push(tenant)));
  return { turns, begun, take };
}

/** These tenants give up a seat each, one after the other. */
const leave = (turns: Turns, ...tenants: readonly string[]): void => {
  for (const tenant of tenants) turns.leave(tenant);
};

test('one tenant alone takes every seat', () => {
  const { take, begun } = open({ seats: 3, seatsOfTenant: 3 });
  expect(take('a', 4)).toEqual(['begun', 'begun', 'begun', 'waits']);
  expect(begun).toEqual(['a', 'a', 'a']);
});

test('one tenant leaves the seats that it may not take to the others, and its next request waits for its own', () => {
  const { turns, take, begun } = open({ seats: 3, seatsOfTenant: 1 });
  expect(take('a', 3)).toEqual(['begun', 'waits', 'waits']);
  expect(take('b', 2)).toEqual(['begun', 'waits']);
  leave(turns, 'a');
  expect(begun).toEqual(['a', 'b', 'a']);
  leave(turns, 'b', 'a');
  expect(begun).toEqual(['a', 'b', 'a', 'b', 'a']);
  expect(take('c')).toEqual(['begun']);
});

test('tenants that wait are served in turn', () => {
  const { turns, take, begun } = open({ seats: 1 });
  take('a', 4);
  take('b', 2);
  take('c');
  leave(turns, 'a', 'a', 'b', 'c', 'a', 'b');
  expect(begun).toEqual(['a', 'a', 'b', 'c', 'a', 'b', 'a']);
});

test('a request that gives up its place begins no more, and the next one gets its turn', () => {
  const { turns, take, begun } = open({ seats: 1 });
  take('a');
  const givenUp = () => void begun.push('given up');
  turns.take('b', givenUp);
  take('b');
  turns.withdraw('b', givenUp);
  turns.withdraw('b', givenUp);
  expect(turns.waiting()).toBe(1);
  leave(turns, 'a');
  expect(begun).toEqual(['a', 'b']);
});

describe('a full queue', () => {
  test('of one tenant refuses its next request, and not that of another', () => {
    const { take } = open({ seats: 1, waitingMaxOfTenant: 2 });
    expect(take('a', 4)).toEqual(['begun', 'waits', 'waits', 'own_full']);
    expect(take('b')).toEqual(['waits']);
  });

  test('of all tenants refuses everybody', () => {
    const { turns, take, begun } = open({ seats: 1, waitingMax: 2 });
    take('a', 2);
    expect(take('b', 2)).toEqual(['waits', 'full']);
    leave(turns, 'a', 'a');
    expect(begun).toEqual(['a', 'a', 'b']);
    expect(take('c', 2)).toEqual(['waits', 'waits']);
  });
});

type Step = { readonly act: 'take' | 'withdraw' | 'leave'; readonly tenant: string };

const steps = fc.array(
  fc.record<Step>({
    act: fc.constantFrom('take', 'take', 'take', 'leave', 'leave', 'withdraw'),
    tenant: fc.constantFrom('a', 'b', 'c', 'd'),
  }),
  { maxLength: 200 },
);

type Asked = { readonly tenant: string; readonly begin: () => void; state: 'waits' | 'begun' | 'gone' | 'left' };

/** Walks through the steps and checks the promises after each of them. */
function walk(seats: number, ofTenant: number, given: readonly Step[]) {
  const seatsOfTenant = Math.min(ofTenant, seats);
  const turns = createTurns({ ...LIMITS, seats, seatsOfTenant });
  const asked: Asked[] = [];
  const begunSince = new Map<Asked, string[]>();
  const inState = (state: Asked['state']) => asked.filter((one) => one.state === state);
  const seatsOf = (tenant: string) => inState('begun').filter((one) => one.tenant === tenant).length;
  const ask = (tenant: string): void => {
    const one: Asked = {
      tenant,
      state: 'waits',
      begin: () => {
        expect(inState('waits').find((other) => other.tenant === tenant)).toBe(one);
        one.state = 'begun';
        begunSince.delete(one);
        // A tenant that has all of its seats waits for itself.
        for (const [first, begun] of begunSince) if (seatsOf(first.tenant) < seatsOfTenant) begun.push(tenant);
      },
    };
    if (inState('waits').every((other) => other.tenant !== tenant)) begunSince.set(one, []);
    asked.push(one);
    turns.take(tenant, one.begin);
  };
  const leaveOne = (): void => {
    const [one] = inState('begun');
    if (!one) return;
    one.state = 'left';
    turns.leave(one.tenant);
  };
  for (const { act, tenant } of given) {
    const waiting = inState('waits').findLast((one) => one.tenant === tenant);
    if (act === 'take') ask(tenant);
    else if (act === 'leave') leaveOne();
    else if (waiting) {
      waiting.state = 'gone';
      begunSince.delete(waiting);
      turns.withdraw(tenant, waiting.begin);
    }
    expect(inState('begun').length).toBeLessThanOrEqual(seats);
    expect(turns.waiting()).toBe(inState('waits').length);
    for (const { tenant } of inState('waits'))
      if (seatsOf(tenant) < seatsOfTenant) expect(inState('begun')).toHaveLength(seats);
    for (const { tenant } of inState('begun')) expect(seatsOf(tenant)).toBeLessThanOrEqual(seatsOfTenant);
    for (const [one, begun] of begunSince) {
      expect(begun).not.toContain(one.tenant);
      expect(new Set(begun).size).toBe(begun.length);
    }
  }
  while (inState('begun').length > 0) leaveOne();
  expect(inState('waits')).toEqual([]);
}

const take = (tenant: string): Step => ({ act: 'take', tenant });
const leaveFirst: Step = { act: 'leave', tenant: 'a' };
/** While one has all of its seats, the other is served twice. */
const ofTwo = [take('c'), take('c'), take('c'), take('b'), take('b'), leaveFirst, leaveFirst];

property([fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 4 }), steps], { examples: [[2, 1, ofTwo]] })(
  'no seat is free while somebody waits who may have it, a tenant is served in its order, and its first in line waits for one of each other tenant',
  (seats, seatsOfTenant, given) => walk(seats, seatsOfTenant, given),
);
