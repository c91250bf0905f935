/** `watch`: prints what happens to a settlement, from its first state until it ends. */
import { isDeepStrictEqual } from 'node:util';
import type { Settlement } from '../../clients/typescript/index.ts';
import { type Currency, parseMoney } from '../../domain/money.ts';
import { isTerminal } from '../../domain/settlement/state.ts';
import { command, EXIT } from '../../ops/command-line/program.ts';
import { apiOf, callApi, noAnswer } from './api.ts';
import { API_URL, type SandboxCommand, type SandboxDeps, SETTLEMENT_ID } from './command.ts';

export type Watched = Pick<
  Settlement,
  | 'status'
  | 'amount'
  | 'source_currency'
  | 'destination_amount'
  | 'destination_currency'
  | 'timeline'
  | 'amount_received'
  | 'exceptions'
  | 'failure'
  | 'certificate_id'
>;

/** An API that restarts answers sooner. It holds a read for at most half of this time. */
const SILENCE_MAX_MS = 60_000;

/** The command has no limit of time, because a settlement may take days. It ends early if the API does not answer. */
export const createWatch = (silenceMaxMs: number): SandboxCommand =>
  command({
    name: 'watch',
    description: 'Prints what happens to a settlement until it ends. Set API_KEY to a key with scope read.',
    takes: { settlementId: SETTLEMENT_ID, url: API_URL },
    run: async ({ env, print, printData }: SandboxDeps, { settlementId, url }) => {
      const api = apiOf(env, url, 'read');
      const silence = new AbortController();
      const timer = setTimeout(() => silence.abort(noAnswer(api)), silenceMaxMs);
      let before: Watched | undefined;
      // Each answer is tested once, so this sees every one of them.
      const until = (settlement: Settlement): boolean => {
        timer.refresh();
        const lines = changesSince(before, settlement);
        for (const line of lines) print(line);
        if (lines.length > 0) printData(settlement);
        before = settlement;
        return isOver(settlement);
      };
      try {
        await callApi(api, ({ settlements }) =>
          settlements.wait(settlementId, { until, timeoutMs: Number.POSITIVE_INFINITY, signal: silence.signal }),
        );
        return EXIT.done;
      } finally {
        clearTimeout(timer);
      }
    },
  });

export const watch = createWatch(SILENCE_MAX_MS);

/**
 * One line for each new state, exception and part of the amount, and one for the end. Times are those of the
 * settlement's clock.
 */
export function changesSince(before: Watched | undefined, now: Watched): string[] {
  const line = (at: string, what: string, more = '') => `${at}  ${what.padEnd(15)}${more && `  ${more}`}`.trimEnd();
  const lines = now.timeline
    .slice(before?.timeline.length ?? 0)
    .map(({ at, status, reason }) => line(at, status, reason));
  // A read shows the latest hundred, so their number does not tell which are new.
  const exceptions = now.exceptions
    .filter((shown) => !before?.exceptions.some((known) => isDeepStrictEqual(known, shown)))
    .map(({ at, type, reason }) => line(at, 'exception', reason === undefined ? type : `${type}, ${reason}`));
  const last = now.timeline.at(-1)?.at ?? '';
  const received =
    isPartlyFunded(now) && now.amount_received !== before?.amount_received
      ? [line(last, 'received', `${now.amount_received} ${now.source_currency} so far`)]
      : [];
  return [...lines, ...received, ...exceptions, ...(isOver(now) ? [endOf(now)] : [])];
}

/** The whole amount is not a part: the state `funded` follows at once. */
function isPartlyFunded({ status, amount, amount_received, source_currency }: Watched): boolean {
  const received = minorUnits(amount_received, source_currency);
  return status === 'awaiting_funds' && received > 0n && received < minorUnits(amount, source_currency);
}

const minorUnits = (amount: string, currency: Currency): bigint => parseMoney(amount, currency) ?? 0n;

/** The certificate comes a moment after the last state. */
const isOver = ({ status, certificate_id }: Watched): boolean =>
  isTerminal(status) && (status !== 'settled' || certificate_id !== null);

function endOf({ status, failure, certificate_id, destination_amount, destination_currency }: Watched): string {
  if (failure !== null) return `Ended as ${status}: ${failure.message} (${failure.code})`;
  if (certificate_id === null) return `Ended as ${status}.`;
  return `Ended as ${status}: ${destination_amount} ${destination_currency}, simulated. Certificate ${certificate_id}.`;
}
