import { expect, test } from 'vitest';
import { retryAfterMsOf } from '../../activities/providers/retry-after.ts';

test('Retry-After is read as seconds or as a date, and nothing else', () => {
  const now = Date.UTC(2026, 10, 21, 8);
  expect(retryAfterMsOf('120', now)).toBe(120_000);
  expect(retryAfterMsOf('Sat, 21 Nov 2026 08:01:00 GMT', now)).toBe(60_000);
  expect(retryAfterMsOf('Sat, 21 Nov 2026 07:00:00 GMT', now)).toBe(0);
  for (const header of [undefined, '', '-1', '1.5', 'soon', '1e9', 'soon GMT'])
    expect(retryAfterMsOf(header, now)).toBeNull();
});
