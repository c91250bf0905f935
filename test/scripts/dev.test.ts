import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { oneAtATime } from '../../scripts/dev/restart.ts';

const QUIET_MS = 20;

test('changes that come together restart once, and one that comes during a restart restarts again', async () => {
  const seen = { started: 0, together: 0, most: 0 };
  const { soon, end } = oneAtATime(async () => {
    seen.started += 1;
    seen.together += 1;
    seen.most = Math.max(seen.most, seen.together);
    await delay(3 * QUIET_MS);
    seen.together -= 1;
  }, QUIET_MS);
  soon();
  soon();
  await expect.poll(() => seen.started).toBe(1);
  soon();
  await expect.poll(() => seen.started).toBe(2);
  await expect.poll(() => seen.together).toBe(0);
  expect(seen.most).toBe(1);
  end();
  soon();
  await delay(3 * QUIET_MS);
  expect(seen.started).toBe(2);
});
