/** Names of subscribers are resolved by the machine's present name servers. */
import { beforeEach, expect, test, vi } from 'vitest';
import { createHostResolver } from '../../process/host-resolver.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
  return () => vi.useRealTimers();
});

const NONE = () => Promise.reject(new Error('ENODATA'));

test('a process that runs for long asks the name servers that the machine has now', async () => {
  let server = '192.0.2.1';
  const resolve = createHostResolver(() => {
    const answer = [server];
    return { resolve4: async () => answer, resolve6: NONE } as never;
  });
  expect(await resolve('hooks.example')).toEqual(['192.0.2.1']);
  server = '192.0.2.2';
  vi.advanceTimersByTime(29_000);
  expect(await resolve('hooks.example')).toEqual(['192.0.2.1']);
  vi.advanceTimersByTime(1_000);
  expect(await resolve('hooks.example')).toEqual(['192.0.2.2']);
});

test('a name without any address is refused', async () => {
  const resolve = createHostResolver(() => ({ resolve4: NONE, resolve6: NONE }) as never);
  await expect(resolve('hooks.example')).rejects.toThrow('no address');
});
