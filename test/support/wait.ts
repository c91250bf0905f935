/** The one way in which commands and their helpers wait for something outside of this process. */
import { setTimeout as delay } from 'node:timers/promises';

export type Patience = {
  readonly timeoutMs: number;
  readonly everyMs?: number;
};

const EVERY_MS = 100;

/** Asks until the answer is as wanted, or the time is over. @returns the last answer */
export async function askUntil<Answer>(
  ask: () => Answer | Promise<Answer>,
  isWanted: (answer: Answer) => boolean,
  { timeoutMs, everyMs = EVERY_MS }: Patience,
): Promise<Answer> {
  const beganAt = Date.now();
  for (;;) {
    const answer = await ask();
    if (isWanted(answer) || Date.now() - beganAt > timeoutMs) return answer;
    await delay(everyMs);
  }
}

/**
 * Asks until there is an answer, which is neither undefined nor false.
 *
 * @param what ends the sentence of the error
 */
export async function until<Found>(
  what: string,
  ask: () => Found | undefined | false | Promise<Found | undefined | false>,
  patience: Patience,
): Promise<Found> {
  const found = await askUntil(ask, (answer) => answer !== undefined && answer !== false, patience);
  if (found === undefined || found === false)
    throw new Error(`After ${patience.timeoutMs / 1_000} s there was still no ${what}.`);
  return found;
}
