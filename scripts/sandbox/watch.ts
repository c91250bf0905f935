/** `watch`: prints what happens to a settlement, from its first state until it ends. */
import { z } from 'zod';
import { CURRENCIES, type Currency, parseMoney } from '../../domain/money.ts';
import { isTerminal, SETTLEMENT_STATUSES } from '../../domain/settlement/state.ts';
import { command, EXIT } from '../../ops/command-line/program.ts';
import { apiOf, readChange } from './api.ts';
import { API_URL, type SandboxCommand, type SandboxDeps, SETTLEMENT_ID } from './command.ts';

const Watched = z.object({
  status: z.enum(SETTLEMENT_STATUSES),
  amount: z.string(),
  source_currency: z.enum(CURRENCIES),
  destination_amount: z.string(),
  destination_currency: z.string(),
  timeline: z.array(z.object({ status: z.string(), at: z.string(), reason: z.string().optional() })),
  amount_received: z.string(),
  exceptions: z.array(z.object({ type: z.string(), at: z.string(), reason: z.string().optional() })),
  failure: z.object({ code: z.string(), message: z.string() }).nullable(),
  certificate_id: z.string().nullable(),
});
export type Watched = z.infer<typeof Watched>;

export const watch: SandboxCommand = command({
  name: 'watch',
  description: 'Prints what happens to a settlement until it ends. Set API_KEY to a key with scope read.',
  takes: { settlementId: SETTLEMENT_ID, url: API_URL },
  run: async ({ env, print, printData }: SandboxDeps, { settlementId, url }) => {
    const api = apiOf(env, url, 'read');
    const path = `/v2/settle/${encodeURIComponent(settlementId)}`;
    let before: Watched | undefined;
    for (let answer = await readChange(api, path, undefined); ; answer = await readChange(api, path, answer)) {
      const settlement = Watched.parse(answer.object);
      const lines = changesSince(before, settlement);
      for (const line of lines) print(line);
      if (lines.length > 0) printData(answer.object);
      if (isOver(settlement)) return EXIT.done;
      before = settlement;
    }
  },
});

/**
 * One line for each new state, exception and part of the amount, and one for the end. Times are those of the
 * settlement's clock.
 */
export function changesSince(before: Watched | undefined, now: Watched): string[] {
  const line = (at: string, what: string, more = '') => `${at}  ${what.padEnd(15)}${more && `  ${more}`}`.trimEnd();
  const lines = now.timeline
    .slice(before?.timeline.length ?? 0)
    .map(({ at, status, reason }) => line(at, status, reason));
  const exceptions = now.exceptions
    .slice(before?.exceptions.length ?? 0)
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
