/** Waits for something outside of this process. */
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 25;
const TIMEOUT_MS = 180_000;

/**
 * Asks until the answer is yes. Asking costs the machine that is measured something, so ask seldom.
 *
 * @param what is in the error, as "<what> did not happen within 180 s"
 */
export async function waitUntil(
  what: string,
  isTrue: () => boolean | Promise<boolean>,
  { everyMs = POLL_MS, timeoutMs = TIMEOUT_MS } = {},
): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (!(await isTrue())) {
    if (performance.now() > endMs) throw new Error(`${what} did not happen within ${timeoutMs / 1_000} s`);
    await delay(everyMs);
  }
}
