/**
 * The settlement's rules (contract §6) as a set of possible worlds. What happens inside the service is not seen from
 * outside, so the model keeps every world that is still possible: it lets each of them go on by itself, applies what
 * the oracle did, and drops those that contradict the answer. No world left: the service broke the contract.
 */
import type { Life, Payment } from './life.ts';

export type Status =
  | 'accepted'
  | 'compliance_hold'
  | 'awaiting_funds'
  | 'funded'
  | 'paying_out'
  | 'needs_review'
  | 'settled'
  | 'rejected'
  | 'expired'
  | 'failed'
  | 'canceled';

export type World = {
  readonly status: Status;
  /** Everything that came in, in the settlement's own currency; minor units. */
  readonly receivedMinor: number;
  /** How many of the simulated provider's events have arrived. */
  readonly simulated: number;
  /** Collection has begun, so the simulated provider acts. */
  readonly collecting: boolean;
  /** The provider reported a failure before the settlement waited for money. */
  readonly failedEarly: boolean;
  /** The recipient is active. */
  readonly active: boolean;
  /** What was decided about the frozen name. */
  readonly verification: 'none' | 'verified' | 'rejected';
  /** The clock has been moved to the end of the current wait. */
  readonly waitOver: boolean;
  /** Somebody pressed "Request Cancellation" in Temporal UI. */
  readonly cancelRequested: boolean;
  /** A request to move the clock got no answer: it may still arrive. */
  readonly advanceUnderWay: boolean;
  /** As `advanceUnderWay`, of an operator's decision about a payout. */
  readonly resolutionUnderWay: 'paid' | 'refused' | null;
};

/** What the oracle did, with what the service answered. */
export type Fact =
  | { readonly kind: 'collected'; readonly amountMinor: number; readonly ownCurrency: boolean }
  | { readonly kind: 'collection_failed' | 'dispute' }
  | { readonly kind: 'cancel' | 'advance'; readonly accepted: boolean }
  | { readonly kind: 'advance_unanswered' }
  | { readonly kind: 'deactivated' }
  | { readonly kind: 'decided'; readonly decision: 'verified' | 'rejected'; readonly ofFrozenName: boolean }
  | { readonly kind: 'cancel_requested' }
  | { readonly kind: 'resolved' | 'resolve_unanswered'; readonly outcome: 'paid' | 'refused' }
  | { readonly kind: 'seen'; readonly status: Status };

const TERMINAL: readonly Status[] = ['settled', 'rejected', 'expired', 'failed', 'canceled'];
export const isTerminal = (status: Status): boolean => TERMINAL.includes(status);
const UNFUNDED: readonly Status[] = ['accepted', 'compliance_hold', 'awaiting_funds'];
const CANCELABLE = UNFUNDED;
/** States whose wait a clock ends. */
const CLOCKED: readonly Status[] = ['compliance_hold', 'awaiting_funds', 'paying_out'];
const VERIFICATION_THRESHOLD_MINOR = 100_000;

/** What the simulated provider sends once collection begins (contract §6): amounts, or a failure. */
function simulatorOf(life: Life): readonly (number | 'failure' | 'dispute')[] {
  const amount = life.amountMinor;
  if (life.payment === 'card') {
    switch (life.cardToken) {
      case 'tok_visa':
        return [amount];
      case 'tok_declined':
        return ['failure'];
      case 'tok_partial':
        return [Math.floor(amount / 2), amount - Math.floor(amount / 2)];
      case 'tok_dispute':
        return [amount, 'dispute'];
      default:
        return [];
    }
  }
  if (life.payment !== 'ach') return [];
  if (life.achToken === 'public-sandbox-return') return ['failure'];
  return life.achToken === 'public-sandbox-checking' ? [amount] : [];
}

export const firstWorld = (life: Life): World => ({
  status: 'accepted',
  receivedMinor: 0,
  simulated: 0,
  collecting: false,
  failedEarly: false,
  active: true,
  verification: life.verified ? 'verified' : 'none',
  waitOver: false,
  cancelRequested: false,
  advanceUnderWay: false,
  resolutionUnderWay: null,
});

/** The worlds that can follow by themselves, one move further. */
function moves(life: Life, world: World): World[] {
  const next: World[] = [];
  const to = (status: Status, change: Partial<World> = {}) =>
    next.push({ ...world, status, waitOver: false, ...change });
  const collect = () => to('awaiting_funds', { collecting: life.payment !== 'internal' });
  if (world.cancelRequested && CANCELABLE.includes(world.status) && !isCovered(life, world))
    to('canceled', { cancelRequested: false });
  if (world.advanceUnderWay && CLOCKED.includes(world.status))
    next.push({ ...world, waitOver: true, advanceUnderWay: false });
  switch (world.status) {
    case 'accepted':
      if (!world.active || life.name === 'sanctioned') to('rejected');
      else if (needsVerification(life) && world.verification !== 'verified') to('compliance_hold');
      else collect();
      break;
    case 'compliance_hold':
      if (world.verification === 'verified') collect();
      else if (world.verification === 'rejected') to('rejected');
      else if (world.waitOver) to('expired');
      break;
    case 'awaiting_funds':
      if (life.payment === 'internal') to('funded', { receivedMinor: life.amountMinor });
      if (world.receivedMinor >= life.amountMinor) to('funded');
      if (world.failedEarly) to('failed');
      if (world.waitOver && !isCovered(life, world)) to('expired');
      break;
    case 'funded':
      to(world.active ? 'paying_out' : 'failed');
      break;
    case 'paying_out':
      if (!world.active) to('failed');
      if (life.name === 'refused') to('failed');
      else if (life.name !== 'pending') to('settled');
      else if (world.waitOver) to('needs_review');
      break;
    case 'needs_review':
      if (world.resolutionUnderWay !== null) to(world.resolutionUnderWay === 'paid' ? 'settled' : 'failed');
      break;
    default:
  }
  const simulated = world.collecting ? simulatorOf(life)[world.simulated] : undefined;
  if (simulated !== undefined) next.push(arrive(life, { ...world, simulated: world.simulated + 1 }, simulated));
  return next;
}

/** The rules of evidence, whatever the state (contract §6). */
function arrive(life: Life, world: World, evidence: number | 'failure' | 'dispute'): World {
  if (evidence === 'dispute') return world;
  if (evidence === 'failure') {
    if (isTerminal(world.status) || world.receivedMinor >= life.amountMinor) return world;
    if (world.status === 'awaiting_funds') return { ...world, status: 'failed' };
    return { ...world, failedEarly: true };
  }
  return { ...world, receivedMinor: world.receivedMinor + evidence };
}

const isCovered = (life: Life, world: World): boolean =>
  world.status === 'awaiting_funds' && world.receivedMinor >= life.amountMinor;

const needsVerification = ({ amountMinor }: Life): boolean => amountMinor >= VERIFICATION_THRESHOLD_MINOR;

/** Whether nothing moves any more unless somebody acts. */
const isQuiet = (life: Life, world: World): boolean => moves(life, world).length === 0;

/** What a fact makes of one world: the worlds that agree with it. */
function apply(life: Life, world: World, fact: Fact): World[] {
  switch (fact.kind) {
    case 'collected':
      return [fact.ownCurrency ? arrive(life, world, fact.amountMinor) : world];
    case 'collection_failed':
      return [arrive(life, world, 'failure')];
    case 'dispute':
      return [world];
    case 'cancel': {
      if (world.status === 'canceled') return fact.accepted ? [world] : [];
      const may = CANCELABLE.includes(world.status) && !isCovered(life, world);
      // Evidence that decides may be committed before the workflow has acted on it: then canceling is refused.
      if (!fact.accepted) return may && !world.failedEarly ? [] : [world];
      return may ? [{ ...world, status: 'canceled' }] : [];
    }
    case 'advance': {
      const clocked = CLOCKED.includes(world.status);
      if (fact.accepted !== clocked) return [];
      return [clocked ? { ...world, waitOver: true } : world];
    }
    case 'advance_unanswered':
      return [world, { ...world, advanceUnderWay: true }];
    case 'deactivated':
      return [{ ...world, active: false }];
    case 'decided':
      return [fact.ofFrozenName ? { ...world, verification: fact.decision } : world];
    case 'cancel_requested':
      return [world, ...(CANCELABLE.includes(world.status) ? [{ ...world, cancelRequested: true }] : [])];
    case 'resolve_unanswered':
      return [world, { ...world, resolutionUnderWay: fact.outcome }];
    case 'resolved':
      if (world.status !== 'needs_review') return [];
      return [{ ...world, status: fact.outcome === 'paid' ? 'settled' : 'failed' }];
    case 'seen':
      return world.status === fact.status ? [world] : [];
  }
}

const keyOf = (world: World): string => Object.values(world).join('|');

/** Every world that these can become by themselves, themselves included. */
function closure(life: Life, worlds: readonly World[]): World[] {
  const known = new Map(worlds.map((world) => [keyOf(world), world]));
  const open = [...worlds];
  for (let world = open.pop(); world !== undefined; world = open.pop()) {
    for (const next of moves(life, world)) {
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
  /** The worlds in which nothing moves any more. */
  quiet(): readonly World[];
  statuses(): readonly Status[];
};

export function createModel(life: Life): Model {
  let worlds = closure(life, [firstWorld(life)]);
  return {
    observe(fact) {
      const next = worlds.flatMap((world) => apply(life, world, fact));
      if (next.length === 0) return false;
      worlds = closure(life, next);
      return true;
    },
    quiet: () => worlds.filter((world) => isQuiet(life, world)),
    statuses: () => [...new Set(worlds.map(({ status }) => status))],
  };
}

/** What is owed back of what came in; minor units. */
export function refundDueMinor(life: Pick<Life, 'amountMinor'>, status: Status, receivedMinor: number): number {
  if (status === 'settled') return receivedMinor - life.amountMinor;
  if (isTerminal(status)) return receivedMinor;
  // Before it is funded, everything is held for the settlement.
  return UNFUNDED.includes(status) ? 0 : receivedMinor - life.amountMinor;
}

export const providerOf = (payment: Payment): 'cardproc' | 'bankledger' | undefined => {
  if (payment === 'internal') return undefined;
  return payment === 'card' ? 'cardproc' : 'bankledger';
};
