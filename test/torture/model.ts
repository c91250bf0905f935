/**
 * The rules of a settlement (contract §6) as a set of possible worlds. The oracle cannot see what happens inside the
 * service, so the model keeps every world that is possible. It adds the worlds that can follow by themselves, applies
 * what the oracle did, and drops the worlds that contradict an answer. When no world is left, the service broke the
 * contract.
 */
import { type Arrival, answerArrives, arrive } from './arrival.ts';
import type { Scenario } from './scenario.ts';
import { cancel, conclude, mayCancel, railOf, steps } from './step.ts';
import {
  firstWorld,
  isUnfunded,
  OWN_CURRENCY,
  type RailAnswer,
  receivedMinor,
  refundDueMinor,
  type Seen,
  type Status,
  type World,
} from './world.ts';

/** What the oracle did, with the service's answer. */
export type Fact =
  | { readonly kind: 'arrived'; readonly arrival: Arrival }
  | { readonly kind: 'cancel' | 'advance'; readonly accepted: boolean }
  | { readonly kind: 'advance_unknown' }
  | { readonly kind: 'deactivated' | 'renamed' | 'verification_opening' }
  /** About the frozen name. */
  | { readonly kind: 'decided'; readonly decision: 'verified' | 'rejected' }
  | { readonly kind: 'cancel_requested' }
  /** A test helper was asked for the rail's answer; undefined: nobody knows whether it was accepted. */
  | { readonly kind: 'answer_requested'; readonly answer: RailAnswer; readonly accepted: boolean | undefined }
  | { readonly kind: 'resolved' | 'resolution_unknown'; readonly outcome: RailAnswer }
  | { readonly kind: 'refunded'; readonly amountMinor: number }
  | { readonly kind: 'seen'; readonly seen: Seen };

/** The states whose wait has an end. */
const TIMED: readonly Status[] = ['compliance_hold', 'awaiting_funds', 'paying_out'];

/** What the simulated provider sends once collection has begun (contract §6). */
function simulatorOf(scenario: Scenario): readonly Arrival[] {
  const currency = OWN_CURRENCY;
  const { amountMinor } = scenario;
  const paid: Arrival = { what: 'collected', amountMinor, currency };
  if (scenario.payment === 'card') {
    const halfMinor = Math.floor(amountMinor / 2);
    switch (scenario.cardToken) {
      case 'tok_visa':
        return [paid];
      case 'tok_declined':
        return [{ what: 'failed', code: 'card_declined' }];
      case 'tok_partial':
        return [
          { ...paid, amountMinor: halfMinor },
          { ...paid, amountMinor: amountMinor - halfMinor },
        ];
      case 'tok_dispute':
        return [paid, { what: 'disputed', amountMinor, currency }];
      default:
        return [];
    }
  }
  if (scenario.payment !== 'ach') return [];
  if (scenario.achToken === 'public-sandbox-return')
    return [{ what: 'returned', amountMinor: 0, currency, code: 'R01' }];
  return scenario.achToken === 'public-sandbox-checking' ? [paid] : [];
}

/** The worlds that can follow by themselves, one move further. */
function moves(scenario: Scenario, world: World): World[] {
  const next = steps(scenario, world);
  if (world.cancelRequested && mayCancel(scenario, world)) next.push(cancel(world));
  if (world.advanceUnknown && TIMED.includes(world.status))
    next.push({ ...world, waitOver: true, advanceUnknown: false });
  const simulated = world.collecting ? simulatorOf(scenario)[world.simulated] : undefined;
  if (simulated !== undefined) next.push(arrive(scenario, { ...world, simulated: world.simulated + 1 }, simulated));
  const own = railOf(scenario);
  if (world.called && own !== undefined) next.push(answerArrives(world, own));
  for (const answer of world.requested) next.push(answerArrives(world, answer));
  return next;
}

/** The worlds that agree with a fact about one world: none, one, or more than one. */
function apply(scenario: Scenario, world: World, fact: Fact): World[] {
  const only = (isPossible: boolean, change: Partial<World> = {}) => (isPossible ? [{ ...world, ...change }] : []);
  switch (fact.kind) {
    case 'arrived':
      return [arrive(scenario, world, fact.arrival)];
    case 'cancel':
      // Canceling a canceled settlement succeeds.
      if (world.status === 'canceled') return only(fact.accepted);
      if (!fact.accepted) return only(!mayCancel(scenario, world));
      return mayCancel(scenario, world) ? [cancel(world)] : [];
    case 'advance': {
      const isTimed = TIMED.includes(world.status);
      return only(fact.accepted === isTimed, { waitOver: isTimed });
    }
    case 'advance_unknown':
      return [world, { ...world, advanceUnknown: true }];
    case 'deactivated':
      // The rail may have been called before, and is not called again.
      return [{ ...world, active: false }, ...only(world.called, { active: false, called: false })];
    case 'verification_opening':
      // While another verification is open, the recipient is pending: a settlement that is admitted then is held.
      return [world, { ...world, verification: 'none' }];
    case 'decided':
      return [{ ...world, verification: fact.decision, decision: fact.decision }];
    case 'renamed':
      return [{ ...world, verification: world.decision }];
    case 'cancel_requested':
      // A run that ended meanwhile takes no request.
      return [world, ...only(isUnfunded(world.status), { cancelRequested: true })];
    case 'answer_requested': {
      const isAwaited = world.status === 'paying_out' || world.status === 'needs_review';
      const requested: World = { ...world, requested: [...world.requested, fact.answer] };
      if (fact.accepted === undefined) return [world, ...(isAwaited ? [requested] : [])];
      if (fact.accepted) return isAwaited ? [world.answer === null ? requested : world] : [];
      return only(!isAwaited);
    }
    case 'resolution_unknown':
      return [world, { ...world, resolutionUnknown: fact.outcome }];
    case 'resolved': {
      const wanted: Status = fact.outcome === 'confirmed' ? 'settled' : 'failed';
      // The rail's own answer, where there is one, decides.
      const resolved = world.status === 'needs_review' ? conclude(world, world.answer ?? fact.outcome) : world;
      return resolved.status === wanted ? [resolved] : [];
    }
    case 'refunded': {
      const money = { ...world, receivedMinor: receivedMinor(scenario, world) };
      const isDue = refundDueMinor(scenario.amountMinor, money) >= fact.amountMinor;
      return only(isDue, { refundedMinor: world.refundedMinor + fact.amountMinor });
    }
    case 'seen':
      return only(isSeen(scenario, world, fact.seen));
  }
}

const isSeen = (scenario: Scenario, world: World, seen: Seen): boolean =>
  world.status === seen.status &&
  world.failure === seen.failure &&
  receivedMinor(scenario, world) === seen.receivedMinor &&
  world.refundedMinor === seen.refundedMinor &&
  world.exceptions.join() === seen.exceptions.toSorted().join();

const keyOf = (world: World): string => JSON.stringify(Object.values(world));

/** The worlds, and every world that they can become by themselves. */
function closure(scenario: Scenario, worlds: readonly World[]): World[] {
  const known = new Map(worlds.map((world) => [keyOf(world), world]));
  const open = [...known.values()];
  for (let world = open.pop(); world !== undefined; world = open.pop()) {
    for (const next of moves(scenario, world)) {
      if (known.has(keyOf(next))) continue;
      known.set(keyOf(next), next);
      open.push(next);
    }
  }
  return [...known.values()];
}

/** The possible worlds of one settlement, narrowed down fact by fact. */
export type Model = {
  /** @returns false when no world agrees with the fact; the worlds then stay as they were */
  observe(fact: Fact): boolean;
  /**
   * Whether the settlement, as it was seen last, still moves by itself: in every world, in none, or in some of them.
   */
  motion(): 'certain' | 'none' | 'possible';
  statuses(): readonly Status[];
};

export function createModel(scenario: Scenario): Model {
  let worlds = closure(scenario, [firstWorld(scenario)]);
  /** The worlds right after the latest fact; none when it contradicted all of them. */
  let present = worlds;
  return {
    observe(fact) {
      present = worlds.flatMap((world) => apply(scenario, world, fact));
      if (present.length > 0) worlds = closure(scenario, present);
      return present.length > 0;
    },
    motion() {
      const moving = present.filter((world) => moves(scenario, world).length > 0).length;
      if (moving === 0 && present.length > 0) return 'none';
      return moving > 0 && moving === present.length ? 'certain' : 'possible';
    },
    statuses: () => [...new Set(worlds.map(({ status }) => status))],
  };
}
