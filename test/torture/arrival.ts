/** What a provider's event does to a settlement at once, in every state (contract §6). */
import type { Scenario } from './scenario.ts';
import {
  isCovered,
  isPayout,
  isTerminal,
  isUnfunded,
  OWN_CURRENCY,
  type Pending,
  type RailAnswer,
  refundDueMinor,
  type World,
  withException,
} from './world.ts';

/** What an event says. Amounts in minor units. */
export type Arrival =
  | { readonly what: 'collected'; readonly amountMinor: number; readonly currency: string }
  /** A card was declined. */
  | { readonly what: 'failed'; readonly code: string }
  /** A bank took money back. An amount of 0 means the whole payment. */
  | { readonly what: 'returned'; readonly amountMinor: number; readonly currency: string; readonly code: string }
  /** A payer disputes. Null: the event names no amount, which means the whole payment. */
  | { readonly what: 'disputed'; readonly amountMinor: number | null; readonly currency: string };

export function arrive(scenario: Scenario, world: World, arrival: Arrival): World {
  switch (arrival.what) {
    case 'collected':
      return collect(scenario, world, arrival);
    case 'failed':
      return fail(scenario, world, { failure: arrival.code, reverses: false, amountMinor: null });
    case 'returned': {
      const { amountMinor, currency, code } = arrival;
      const isOther = currency !== OWN_CURRENCY;
      if (isOther || world.receivedMinor > 0)
        return takeBack(scenario, world, arrival, { exception: 'returned', failure: 'payment_returned' });
      return fail(scenario, world, { failure: code, reverses: false, amountMinor });
    }
    case 'disputed':
      return takeBack(scenario, world, arrival, { exception: 'disputed', failure: 'payment_disputed' });
  }
}

/** In `funded` it first fills what was taken back there. The rest is due back. */
function collect(
  scenario: Scenario,
  world: World,
  { amountMinor, currency }: { readonly amountMinor: number; readonly currency: string },
): World {
  if (currency !== OWN_CURRENCY) return withException(world, 'currency_mismatch', amountMinor, currency);
  if (amountMinor === 0) return world;
  const { status, receivedMinor } = world;
  const grown: World = {
    ...world,
    receivedMinor: receivedMinor + amountMinor,
    collections: [...world.collections, amountMinor],
  };
  if (isUnfunded(status)) return grown;
  const missingMinor = status === 'funded' ? Math.max(0, scenario.amountMinor - receivedMinor) : 0;
  const dueBackMinor = Math.max(0, amountMinor - missingMinor);
  if (dueBackMinor === 0) return grown;
  return withException(grown, isTerminal(status) ? 'late_evidence' : 'overpaid', dueBackMinor);
}

/** Money that was never counted does not come. It decides only while the amount is not covered. */
function fail(scenario: Scenario, world: World, pending: Pending): World {
  if (isTerminal(world.status)) return withException(world, 'late_evidence', pending.amountMinor);
  if (!isUnfunded(world.status) || isCovered(scenario, world)) return world;
  return { ...world, pending: [...world.pending, pending] };
}

/** Never more than is held is taken back. From the payout on, only what is due back becomes less. */
function takeBack(
  scenario: Scenario,
  world: World,
  named: { readonly amountMinor: number | null; readonly currency: string },
  { exception, failure }: { readonly exception: 'returned' | 'disputed'; readonly failure: string },
): World {
  if (named.currency !== OWN_CURRENCY && named.amountMinor !== null)
    return withException(world, exception, named.amountMinor, named.currency);
  const { status, receivedMinor, refundedMinor, takenBackMinor } = world;
  const dueMinor = refundDueMinor(scenario.amountMinor, world);
  const countedMinor = isPayout(status)
    ? dueMinor + scenario.amountMinor - takenBackMinor
    : receivedMinor - refundedMinor;
  const takenMinor = named.amountMinor ? Math.min(named.amountMinor, countedMinor) : countedMinor;
  const reversedMinor = isPayout(status) ? Math.min(takenMinor, dueMinor) : takenMinor;
  const ends = !isPayout(status) && !isTerminal(status) && takenMinor > 0;
  const pending: Pending = { failure, reverses: true, amountMinor: takenMinor };
  const reversed: World = {
    ...world,
    receivedMinor: receivedMinor - reversedMinor,
    takenBackMinor: status === 'settled' ? takenBackMinor : takenBackMinor + takenMinor - reversedMinor,
    pending: ends ? [...world.pending, pending] : world.pending,
  };
  return withException(reversed, exception, takenMinor > 0 ? takenMinor : named.amountMinor);
}

/** The rail's answer is recorded in every state. Only the first one counts. */
export function answerArrives(world: World, answer: RailAnswer): World {
  if (world.answer !== null) return world;
  const recorded: World = { ...world, answer, called: false, requested: [] };
  return isTerminal(world.status) ? withException(recorded, 'late_evidence', null) : recorded;
}
