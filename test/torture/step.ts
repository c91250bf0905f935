/** The transitions that the service makes by itself (contract §6). */
import type { Scenario } from './scenario.ts';
import { isCovered, isUnfunded, type RailAnswer, type Status, type World, withException } from './world.ts';

const VERIFICATION_THRESHOLD_MINOR = 100_000;

/** What the rail answers by itself; undefined when it does not (contract §6). */
export function railOf({ name }: Scenario): RailAnswer | undefined {
  if (name === 'pending') return undefined;
  return name === 'refused' ? 'refused' : 'confirmed';
}

/** Committed evidence decides what comes next, although the service may not have acted on it yet. */
const isDecided = (scenario: Scenario, world: World): boolean =>
  world.status === 'awaiting_funds' && (isCovered(scenario, world) || world.pending.length > 0);

export const mayCancel = (scenario: Scenario, world: World): boolean =>
  isUnfunded(world.status) && !isDecided(scenario, world);

export const cancel = (world: World): World => end({ ...world, cancelRequested: false }, 'canceled', null);

export function steps(scenario: Scenario, world: World): World[] {
  switch (world.status) {
    case 'accepted':
      return [admit(scenario, world)];
    case 'compliance_hold':
      if (world.verification === 'verified')
        return [world.active ? collect(scenario, world) : end(world, 'rejected', 'recipient_inactive')];
      if (world.verification === 'rejected') return [end(world, 'rejected', 'verification_rejected')];
      return world.waitOver ? [end(world, 'expired', 'verification_timeout')] : [];
    case 'awaiting_funds':
      if (world.pending.length > 0) return [endByEvidence(world)];
      if (isCovered(scenario, world)) return [fund(scenario, world)];
      return world.waitOver ? [end(world, 'expired', 'funding_timeout')] : [];
    case 'funded':
      if (world.pending.length > 0) return [endByEvidence(world)];
      return [world.active ? payOut(scenario, world) : end(world, 'failed', 'recipient_inactive')];
    case 'paying_out':
    case 'needs_review':
      return reviewPayout(world);
    default:
      return [];
  }
}

function admit(scenario: Scenario, world: World): World {
  if (!world.active) return end(world, 'rejected', 'recipient_inactive');
  if (scenario.name === 'sanctioned') return end(world, 'rejected', 'screening_hit');
  const isHeld = scenario.amountMinor >= VERIFICATION_THRESHOLD_MINOR && world.verification !== 'verified';
  return isHeld ? enter(world, 'compliance_hold') : collect(scenario, world);
}

/** The legacy route funds the settlement from inside, in the same step. */
function collect(scenario: Scenario, world: World): World {
  const waiting = enter(world, 'awaiting_funds');
  if (scenario.payment !== 'internal') return { ...waiting, collecting: true };
  return fund(scenario, { ...waiting, arrivedMinor: scenario.amountMinor, collections: [scenario.amountMinor] });
}

/** Each payment that exceeds the amount is an exception, with its surplus. */
function fund(scenario: Scenario, world: World): World {
  let totalMinor = 0;
  let funded = enter(world, 'funded');
  for (const collectedMinor of world.collections) {
    totalMinor += collectedMinor;
    const surplusMinor = Math.min(totalMinor - scenario.amountMinor, collectedMinor);
    if (surplusMinor > 0) funded = withException(funded, 'overpaid', surplusMinor);
  }
  return funded;
}

const payOut = (scenario: Scenario, world: World): World => ({
  ...enter(world, 'paying_out'),
  called: railOf(scenario) !== undefined,
});

/**
 * What the rail said decides. After three days without an answer the payout is in review, where a call that was slow
 * may still bring one.
 */
function reviewPayout(world: World): World[] {
  if (world.answer !== null) return [conclude(world, world.answer)];
  if (world.status === 'paying_out' && world.waitOver) {
    const reviewed = enter(world, 'needs_review');
    return world.called ? [reviewed, { ...reviewed, called: false }] : [reviewed];
  }
  const { resolutionUnknown } = world;
  return world.status === 'needs_review' && resolutionUnknown !== null ? [conclude(world, resolutionUnknown)] : [];
}

export const conclude = (world: World, answer: RailAnswer): World =>
  answer === 'confirmed' ? end(world, 'settled', null) : end(world, 'failed', 'payout_refused');

const enter = (world: World, status: Status): World => ({ ...world, status, waitOver: false });

/** The oldest evidence decides. */
function endByEvidence(world: World): World {
  const [deciding, ...others] = world.pending;
  return end({ ...world, pending: others }, 'failed', deciding?.failure ?? null);
}

/** Evidence that did not decide and took nothing back is an exception. */
function end(world: World, status: Status, failure: string | null): World {
  let ended: World = { ...enter(world, status), failure, pending: [] };
  for (const { late, amountMinor } of world.pending) if (late !== null) ended = withException(ended, late, amountMinor);
  return ended;
}
