/** All activities. The worker registers them; workflows import their types. */
import { asyncLocalStorage } from '@temporalio/activity';
import { asTenant } from '../db/tenant.ts';
import { DomainError } from '../domain/error.ts';
import { isRemote, type RuntimeEnvironment } from '../domain/runtime.ts';
import type { ActivityDeps } from './deps.ts';
import { type AnyActivity, failureOf, type Limit, withLimits, withReports } from './failure.ts';
import { otpActivities } from './otp.ts';
import { sandboxActivities } from './sandbox.ts';
import { settlementActivities } from './settlement.ts';
import { sweepActivities } from './sweep.ts';
import { verificationActivities, verificationSandboxActivities } from './verification.ts';
import { webhookLaneActivities } from './webhook-lane.ts';
import { webhookSubscriptionActivities } from './webhook-subscription.ts';

/** Rounds of subscriptions whose endpoint hangs last for minutes. The other slots of their queue are for the lanes. */
export const ROUNDS_MAX = 900;

const LIMITS = {
  /** Of the 50 of their queue: a provider or a mail server that hangs must leave room for settlements. */
  createApplicant: { atOnce: 16 },
  sendOtp: { atOnce: 20 },
  deliverRetries: { atOnce: ROUNDS_MAX, comesAgainMs: [10_000, 30_000] },
} as const satisfies Partial<Record<string, Limit>>;

export function createActivities(deps: ActivityDeps, limits: Partial<Record<keyof typeof LIMITS, Limit>> = LIMITS) {
  const steps = settlementActivities(deps);
  const activities = {
    ...steps,
    ...verificationActivities(deps),
    ...webhookLaneActivities({ ...deps, db: deps.laneDb }),
    ...webhookSubscriptionActivities({ ...deps, db: deps.retryDb }),
    ...otpActivities(deps),
    ...sweepActivities(deps),
    ...inLocalSandboxOnly(deps.runtime, { ...sandboxActivities(deps), ...verificationSandboxActivities(deps) }),
  };
  const observe = (activity: string, durationMs: number, isFailed: boolean): void =>
    deps.observer?.activityEnded(activity, { isStep: activity in steps, isFailed, seconds: durationMs / 1_000 });
  const reported = withReports(forTheirOrganizations(activities), {
    done: (activity, input, result, durationMs) => {
      observe(activity, durationMs, false);
      deps.log.info(
        { activity, ...subjectOf(input), ...outcomeOf(result), duration_ms: durationMs, ...runFields() },
        'activity done',
      );
    },
    failed: (activity, input, error, durationMs) => {
      observe(activity, durationMs, failureOf(error).nonRetryable !== true);
      deps.log.warn({ err: error, activity, ...subjectOf(input), ...runFields() }, 'an activity failed');
    },
  });
  return withLimits(reported, limits);
}

/** Each activity runs for the organization that its input names: only that one's lane looks for new deliveries. */
function forTheirOrganizations<T extends Record<string, AnyActivity>>(group: T): T {
  const wrapped = Object.entries(group).map(([name, run]) => [
    name,
    async (input: never) => {
      const orgId = new Map(fieldsOf(input)).get('orgId');
      return typeof orgId === 'string' ? await asTenant(orgId, () => run(input)) : await run(input);
    },
  ]);
  return Object.fromEntries(wrapped) as T;
}

/** Activities that play a provider. In a remote runtime, each throws DomainError `local_sandbox_only`. */
function inLocalSandboxOnly<T extends Record<string, AnyActivity>>(runtime: RuntimeEnvironment, group: T): T {
  if (!isRemote(runtime)) return group;
  const refuse: AnyActivity = async () => {
    throw new DomainError('local_sandbox_only');
  };
  return Object.fromEntries(Object.keys(group).map((name) => [name, refuse])) as T;
}

/** The names in the log of the ids that activities take. The rest of an input is not logged. */
const LOGGED_IDS = {
  settlementId: 'settlement_id',
  verificationId: 'verification_id',
  webhookId: 'webhook_id',
  orgId: 'org_id',
} as const;

/** What is logged of a result. */
const LOGGED_RESULTS: ReadonlySet<string> = new Set(['status', 'outcome']);

const fieldsOf = (value: unknown): [string, unknown][] =>
  typeof value === 'object' && value !== null ? Object.entries(value) : [];

function subjectOf(input: unknown): Record<string, unknown> {
  const given = new Map(fieldsOf(input));
  return Object.fromEntries(Object.entries(LOGGED_IDS).map(([name, logged]) => [logged, given.get(name)]));
}

/** The object's status after the activity, or what became of it, where its result has one. */
function outcomeOf(result: unknown): Record<string, unknown> {
  const given = fieldsOf(result).filter(([name, value]) => LOGGED_RESULTS.has(name) && typeof value === 'string');
  return Object.fromEntries(given);
}

/** The run that an activity belongs to; empty when a test calls the activity outside of Temporal. */
function runFields(): Record<string, unknown> {
  const info = asyncLocalStorage.getStore()?.info;
  return info === undefined
    ? {}
    : { workflow_id: info.workflowExecution?.workflowId, run_id: info.workflowExecution?.runId, attempt: info.attempt };
}

export type Activities = ReturnType<typeof createActivities>;
