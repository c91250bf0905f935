/** The limit of requests that are in flight to one host, over all subscriptions. */
import { expect, test } from 'vitest';
import { createDestinations, HOST_IN_FLIGHT_MAX } from '../../activities/destination.ts';

const to = (url: string, isFailing = false) => ({ url, isFailing });
const HOOK = to('https://hooks.example/a');
const never = () => expect.unreachable();

test('a host has at most so many requests in flight, whichever path or port they go to', () => {
  const destinations = createDestinations();
  for (let n = 0; n < HOST_IN_FLIGHT_MAX; n += 1)
    expect(destinations.take(to(`https://HOOKS.example:${2_000 + n}/${n}`), never)).toBe(true);
  expect(destinations.take(HOOK, () => undefined)).toBe(false);
  expect(destinations.take(to('https://others.example/a'), never)).toBe(true);
});

test('a host name with a dot at its end is the same host', () => {
  const destinations = createDestinations(1);
  expect(destinations.take(HOOK, never)).toBe(true);
  expect(destinations.take(to('https://hooks.example./a'), () => undefined)).toBe(false);
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

test('subscriptions that fail have at most half of a host, so that the others at it are sent to', () => {
  const destinations = createDestinations(4);
  const failing = to(HOOK.url, true);
  const isTaken = [failing, failing, failing].map((destination) => destinations.take(destination, () => undefined));
  expect(isTaken).toEqual([true, true, false]);
  expect([HOOK, HOOK, HOOK].map((destination) => destinations.take(destination, () => undefined))).toEqual([
    true,
    true,
    false,
  ]);
  destinations.release(failing);
  expect(destinations.take(failing, never)).toBe(true);
});

test('receivers on this machine are told apart by their ports', () => {
  const destinations = createDestinations(1);
  for (const url of ['http://127.0.0.1:1/a', 'http://127.0.0.1:2/a', 'http://[::1]:1/a'])
    expect(destinations.take(to(url), never)).toBe(true);
});
