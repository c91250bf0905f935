/**
 * The rules of a settlement (contract §6) as a set of possible worlds. The oracle cannot see what happens inside the
 * service, so the model keeps every world that is possible. It adds the worlds that can follow by themselves, applies
 * what the oracle did, and drops the worlds that contradict an answer. When no world is left, the service broke the
 * contract.
 */
import type { Life } from './life.ts';

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
  /** How many events of the simulated provider have arrived. */
  readonly simulated: number;
  /** Collection has begun, so the simulated provider acts. */
  readonly collecting: boolean;
  /** The provider reported a failure, and no step has followed from it. */
  readonly failurePending: boolean;
  /** The recipient is active. */
  readonly active: boolean;
  /** The recipient was deactivated, and a step that had read it before may still be committed. */
  readonly activeInStep: boolean;
  /** The last decision about the frozen name. */
  readonly verification: 'none' | 'verified' | 'rejected';
  /** The clock was moved to the end of the current wait. */
  readonly waitOver: boolean;
  /** Somebody pressed "Request Cancellation" in Temporal UI. */
  readonly cancelRequested: boolean;
  /** A request to move the clock had no answer: it may still have an effect. */
  readonly advanceUnknown: boolean;
  /** As `advanceUnknown`, for an operator's decision about the payout. */
  readonly resolutionUnknown: 'paid' | 'refused' | null;
};

/** What the oracle did, with the service's answer. */
export type Fact =
  | { readonly kind: 'collected'; readonly amountMinor: number; readonly ownCurrency: boolean }
  | { readonly kind: 'collection_failed' | 'dispute' }
  | { readonly kind: 'cancel' | 'advance'; readonly accepted: boolean }
  | { readonly kind: 'advance_unknown' }
  | { readonly kind: 'deactivated' | 'verification_opening' }
  | { readonly kind: 'decided'; readonly decision: 'verified' | 'rejected'; readonly ofFrozenName: boolean }
  | { readonly kind: 'cancel_requested' }
  | { readonly kind: 'resolved' | 'resolution_unknown'; readonly outcome: 'paid' | 'refused' }
  | { readonly kind: 'seen'; readonly status: Status; readonly receivedMinor: number };

const TERMINAL: readonly Status[] = ['settled', 'rejected', 'expired', 'failed', 'canceled'];
export const isTerminal = (status: Status): boolean => TERMINAL.includes(status);
const CANCELABLE: readonly Status[] = ['accepted', 'compliance_hold', 'awaiting_funds'];
/** The states whose wait has an end. */
const TIMED: readonly Status[] = ['compliance_hold', 'awaiting_funds', 'paying_out'];
const VERIFICATION_THRESHOLD_MINOR = 100_000;

type Evidence = number | 'failure' | 'dispute';

/** What the simulated provider sends once collection has begun (contract §6): amounts, a failure or a dispute. */
function simulatorOf(life: Life): readonly Evidence[] {
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

const firstWorld = (life: Life): World => ({
  status: 'accepted',
  receivedMinor: 0,
  simulated: 0,
  collecting: false,
  failurePending: false,
  active: true,
  activeInStep: false,
  verification: life.verified ? 'verified' : 'none',
  waitOver: false,
  cancelRequested: false,
  advanceUnknown: false,
  resolutionUnknown: null,
});

const isCovered = (life: Life, world: World): boolean => world.receivedMinor >= life.amountMinor;

/** Committed evidence decides what comes next, although the service may not have acted on it yet. */
const isDecided = (life: Life, world: World): boolean =>
  world.status === 'awaiting_funds' && (isCovered(life, world) || world.failurePending);

const mayCancel = (life: Life, world: World): boolean => CANCELABLE.includes(world.status) && !isDecided(life, world);

/** The worlds that can follow by themselves, one move further. */
function moves(life: Life, world: World): World[] {
  const next = steps(life, world).map((step): World => ({ ...world, waitOver: false, activeInStep: false, ...step }));
  if (world.cancelRequested && mayCancel(life, world))
    next.push({ ...world, status: 'canceled', waitOver: false, cancelRequested: false });
  if (world.advanceUnknown && TIMED.includes(world.status))
    next.push({ ...world, waitOver: true, advanceUnknown: false });
  const simulated = world.collecting ? simulatorOf(life)[world.simulated] : undefined;
  if (simulated !== undefined) next.push(arrive(life, { ...world, simulated: world.simulated + 1 }, simulated));
  return next;
}

type Step = Partial<World> & Pick<World, 'status'>;

/** The transitions that the service makes by itself. */
function steps(life: Life, world: World): Step[] {
  const collect: Step = { status: 'awaiting_funds', collecting: life.payment !== 'internal' };
  const when = (condition: boolean, step: Step): Step[] => (condition ? [step] : []);
  switch (world.status) {
    case 'accepted':
      return [
        ...when(!world.active, { status: 'rejected' }),
        ...when(world.active || world.activeInStep, admitted(life, world, collect)),
      ];
    case 'compliance_hold':
      if (world.verification === 'verified') return [collect];
      if (world.verification === 'rejected') return [{ status: 'rejected' }];
      return when(world.waitOver, { status: 'expired' });
    case 'awaiting_funds':
      return [
        ...when(life.payment === 'internal', { status: 'funded', receivedMinor: life.amountMinor }),
        ...when(isCovered(life, world), { status: 'funded' }),
        ...when(world.failurePending, { status: 'failed', failurePending: false }),
        ...when(world.waitOver && !isDecided(life, world), { status: 'expired' }),
      ];
    case 'funded':
      return [{ status: world.active ? 'paying_out' : 'failed' }];
    case 'paying_out':
      return [
        ...when(!world.active || life.name === 'refused', { status: 'failed' }),
        ...when(life.name !== 'refused' && life.name !== 'pending', { status: 'settled' }),
        ...when(life.name === 'pending' && world.waitOver, { status: 'needs_review' }),
      ];
    case 'needs_review':
      return when(world.resolutionUnknown !== null, resolvedTo(world.resolutionUnknown ?? 'paid'));
    default:
      return [];
  }
}

function admitted(life: Life, world: World, collect: Step): Step {
  if (life.name === 'sanctioned') return { status: 'rejected' };
  return needsVerification(life) && world.verification !== 'verified' ? { status: 'compliance_hold' } : collect;
}

const resolvedTo = (outcome: 'paid' | 'refused'): Step => ({ status: outcome === 'paid' ? 'settled' : 'failed' });

const needsVerification = ({ amountMinor }: Life): boolean => amountMinor >= VERIFICATION_THRESHOLD_MINOR;

/** The rules of evidence, in every state (contract §6). */
function arrive(life: Life, world: World, evidence: Evidence): World {
  if (evidence === 'dispute') return world;
  if (evidence !== 'failure') return { ...world, receivedMinor: world.receivedMinor + evidence };
  return isTerminal(world.status) || isCovered(life, world) ? world : { ...world, failurePending: true };
}

/** The worlds that agree with a fact about one world: none, one, or more than one. */
function apply(life: Life, world: World, fact: Fact): World[] {
  const only = (isPossible: boolean, change: Partial<World> = {}) => (isPossible ? [{ ...world, ...change }] : []);
  switch (fact.kind) {
    case 'collected':
      return [fact.ownCurrency ? arrive(life, world, fact.amountMinor) : world];
    case 'collection_failed':
      return [arrive(life, world, 'failure')];
    case 'dispute':
      return [world];
    case 'cancel':
      // Canceling a canceled settlement succeeds.
      if (world.status === 'canceled') return only(fact.accepted);
      if (!fact.accepted) return only(!mayCancel(life, world));
      return only(mayCancel(life, world), { status: 'canceled', waitOver: false });
    case 'advance': {
      const isTimed = TIMED.includes(world.status);
      return only(fact.accepted === isTimed, { waitOver: isTimed });
    }
    case 'advance_unknown':
      return [world, { ...world, advanceUnknown: true }];
    case 'deactivated': {
      // Nothing is paid before the recipient is looked at once more, so a small settlement is admitted without a lock.
      const activeInStep = world.status === 'accepted' && !needsVerification(life);
      // A payout that was sent before is not stopped, unless it is sent again.
      const sentBefore = world.status === 'paying_out' ? [world] : [];
      return [{ ...world, active: false, activeInStep }, ...sentBefore];
    }
    case 'verification_opening':
      // While another verification is open, the recipient is pending: a settlement that is admitted then is held.
      return [world, { ...world, verification: 'none' }];
    case 'decided':
      return [fact.ofFrozenName ? { ...world, verification: fact.decision } : world];
    case 'cancel_requested':
      // A run that ended meanwhile takes no request.
      return [world, ...(CANCELABLE.includes(world.status) ? [{ ...world, cancelRequested: true }] : [])];
    case 'resolution_unknown':
      return [world, { ...world, resolutionUnknown: fact.outcome }];
    case 'resolved':
      return only(world.status === 'needs_review', resolvedTo(fact.outcome));
    case 'seen':
      return only(world.status === fact.status && world.receivedMinor === fact.receivedMinor);
  }
}

const keyOf = (world: World): string => Object.values(world).join('|');

/** The worlds, and every world that they can become by themselves. */
function closure(life: Life, worlds: readonly World[]): World[] {
  const known = new Map(worlds.map((world) => [keyOf(world), world]));
  const open = [...known.values()];
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
  /**
   * Whether the settlement, as it was seen last, still moves by itself: in every world, in none, or in some of them.
   */
  motion(): 'certain' | 'none' | 'possible';
  statuses(): readonly Status[];
};

export function createModel(life: Life): Model {
  let worlds = closure(life, [firstWorld(life)]);
  /** The worlds right after the latest fact; none when it contradicted all of them. */
  let present = worlds;
  return {
    observe(fact) {
      present = worlds.flatMap((world) => apply(life, world, fact));
      if (present.length > 0) worlds = closure(life, present);
      return present.length > 0;
    },
    motion() {
      const moving = present.filter((world) => moves(life, world).length > 0).length;
      if (moving === 0 && present.length > 0) return 'none';
      return moving > 0 && moving === present.length ? 'certain' : 'possible';
    },
    statuses: () => [...new Set(worlds.map(({ status }) => status))],
  };
}

/** What is owed back of what came in; minor units. Before it is funded, a settlement holds everything. */
export function refundDueMinor(amountMinor: number, status: Status, receivedMinor: number): number {
  if (CANCELABLE.includes(status)) return 0;
  return isTerminal(status) && status !== 'settled' ? receivedMinor : receivedMinor - amountMinor;
}
