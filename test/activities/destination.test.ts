/** The limit of requests that are in flight to one host, over all subscriptions. */
import { expect, test } from 'vitest';
import { createDestinations, HOST_IN_FLIGHT_MAX } from '../../activities/destination.ts';

const HOOK = 'https://hooks.example/a';
const never = () => expect.unreachable();

test('a host has at most so many requests in flight, whichever path or port they go to', () => {
  const destinations = createDestinations();
  for (let n = 0; n < HOST_IN_FLIGHT_MAX; n += 1)
    expect(destinations.take(`https://HOOKS.example:${2_000 + n}/${n}`, never)).toBe(true);
  expect(destinations.take(HOOK, () => undefined)).toBe(false);
  expect(destinations.take('https://others.example/a', never)).toBe(true);
});

test('a free place goes to who waits, the first one first, and past whoever does not take it', () => {
  const destinations = createDestinations(1);
  const called: string[] = [];
  const waitAs = (name: string, takes: boolean) =>
    destinations.take(HOOK, () => {
      called.push(name);
      if (takes) destinations.take(HOOK, never);
    });
  const isTaken = [
    destinations.take(HOOK, never),
    waitAs('first', false),
    waitAs('second', true),
    waitAs('third', true),
  ];
  expect(isTaken).toEqual([true, false, false, false]);
  destinations.release(HOOK);
  expect(called).toEqual(['first', 'second']);
  destinations.release(HOOK);
  expect(called).toEqual(['first', 'second', 'third']);
});

test('receivers on this machine are told apart by their ports', () => {
  const destinations = createDestinations(1);
  for (const url of ['http://127.0.0.1:1/a', 'http://127.0.0.1:2/a', 'http://[::1]:1/a'])
    expect(destinations.take(url, never)).toBe(true);
});
