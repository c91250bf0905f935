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
  /** A payer disputes. Null: the event names no amount. In the settlement's currency it means the whole payment. */
  | { readonly what: 'disputed'; readonly amountMinor: number | null; readonly currency: string };

export function arrive(scenario: Scenario, world: World, arrival: Arrival): World {
  switch (arrival.what) {
    case 'collected':
      return collect(scenario, world, arrival);
    case 'failed':
      return fail(scenario, world, { failure: arrival.code, late: 'late_evidence', amountMinor: null });
    case 'returned': {
      const { amountMinor, currency, code } = arrival;
      const isFailure = isUnfunded(world.status) && world.arrivedMinor === 0 && currency === OWN_CURRENCY;
      return isFailure
        ? fail(scenario, world, { failure: code, late: 'returned', amountMinor })
        : takeBack(world, arrival, { exception: 'returned', failure: 'payment_returned' });
    }
    case 'disputed':
      return takeBack(world, arrival, { exception: 'disputed', failure: 'payment_disputed' });
  }
}

/** What of it the settlement does not hold is an exception, also where it makes up for what was taken back. */
function collect(
  scenario: Scenario,
  world: World,
  { amountMinor, currency }: { readonly amountMinor: number; readonly currency: string },
): World {
  if (currency !== OWN_CURRENCY) return withException(world, 'currency_mismatch', amountMinor, currency);
  if (amountMinor === 0) return world;
  const { status, arrivedMinor, refundedMinor } = world;
  const grown: World = {
    ...world,
    arrivedMinor: arrivedMinor + amountMinor,
    collections: [...world.collections, amountMinor],
  };
  if (isUnfunded(status)) return grown;
  const heldMinor = (minor: number): number => Math.min(Math.max(0, minor - refundedMinor), scenario.amountMinor);
  const addedMinor = status === 'funded' ? heldMinor(grown.arrivedMinor) - heldMinor(arrivedMinor) : 0;
  if (addedMinor === amountMinor) return grown;
  return withException(grown, isTerminal(status) ? 'late_evidence' : 'overpaid', amountMinor - addedMinor);
}

/** Money that was never counted does not come. It decides only while the amount is not covered. */
function fail(scenario: Scenario, world: World, pending: Pending): World {
  if (isTerminal(world.status)) return withException(world, 'late_evidence', pending.amountMinor);
  if (!isUnfunded(world.status) || isCovered(scenario, world)) return world;
  return { ...world, pending: [...world.pending, pending] };
}

/** Never more than has arrived is taken back. The exception names what the evidence names, or else all of that. */
function takeBack(
  world: World,
  named: { readonly amountMinor: number | null; readonly currency: string },
  { exception, failure }: { readonly exception: 'returned' | 'disputed'; readonly failure: string },
): World {
  if (named.currency !== OWN_CURRENCY) return withException(world, exception, named.amountMinor, named.currency);
  const { status, arrivedMinor } = world;
  const claimedMinor = named.amountMinor || arrivedMinor;
  const takenMinor = Math.min(claimedMinor, arrivedMinor);
  const ends = !isPayout(status) && !isTerminal(status) && takenMinor > 0;
  const pending: Pending = { failure, late: null, amountMinor: takenMinor };
  const taken: World = {
    ...world,
    arrivedMinor: arrivedMinor - takenMinor,
    pending: ends ? [...world.pending, pending] : world.pending,
  };
  return withException(taken, exception, claimedMinor || named.amountMinor, named.currency);
}

/** The rail's answer is recorded in every state. Only the first one counts. */
export function answerArrives(world: World, answer: RailAnswer): World {
  if (world.answer !== null) return world;
  const recorded: World = { ...world, answer, called: false, requested: [] };
  return isTerminal(world.status) ? withException(recorded, 'late_evidence', null) : recorded;
}
