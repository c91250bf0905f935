/**
 * How activities fail. A retry does not help an expected refusal, so it becomes a non-retryable failure whose type is
 * the error's code. Temporal retries everything else. Messages are constants: a database's message can contain data of
 * a row, and people read histories.
 */
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { causeOf } from '../db/client.ts';
import { DomainError, ValidationError } from '../domain/error.ts';
import { WORKER_BUSY } from '../domain/task-queue.ts';

/** A provider gave no usable answer, or this worker has none. The activity is retried. */
export class ProviderFailure extends Error {
  readonly code: 'identity_provider' | 'mail_server';

  constructor(code: ProviderFailure['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** What operators read at an activity that is retried. The failure's type names the dependency's error. */
const DEPENDENCY_FAILED =
  "A dependency failed. The failure's type has the error's code, and the worker's log has its place in the code. " +
  'The activity is retried. If it keeps failing, see docs/operations.md.';

/** The failure to throw instead of `error`. */
export function failureOf(error: unknown): ApplicationFailure {
  if (error instanceof ApplicationFailure) return error;
  if (error instanceof DomainError) {
    return ApplicationFailure.create({
      message: error.detail,
      type: error.code,
      nonRetryable: true,
      category: ApplicationFailureCategory.BENIGN,
    });
  }
  if (error instanceof ValidationError)
    return ApplicationFailure.create({ message: 'The input is not valid.', type: 'validation', nonRetryable: true });
  // A statement's error has PostgreSQL's one, with its code, inside.
  const cause = causeOf(error);
  const code = cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : 'unknown';
  return ApplicationFailure.create({ message: DEPENDENCY_FAILED, type: `dependency:${code}` });
}

/**
 * How many runs of an activity a process has at once. A further run fails before it begins, and Temporal repeats it.
 */
export type Limit = {
  readonly atOnce: number;
  /** Temporal repeats such a run after a random time between these two; if absent, by the activity's retry policy. */
  readonly comesAgainMs?: readonly [least: number, most: number];
};

/**
 * Limits the activities of a group that can hang, so that they do not take all slots of their task queue. A run that
 * exceeds a limit is not reported as a fault.
 */
export function withLimits<T extends Record<string, AnyActivity>>(
  group: T,
  limits: Readonly<Partial<Record<keyof T, Limit>>>,
): T {
  const limited = Object.entries(group).map(([name, run]) => {
    const limit = limits[name];
    return [name, limit ? limitedTo(limit, run) : run];
  });
  return Object.fromEntries(limited) as T;
}

function limitedTo({ atOnce, comesAgainMs }: Limit, run: AnyActivity): AnyActivity {
  let running = 0;
  return async (input) => {
    if (running === atOnce)
      throw ApplicationFailure.create({
        message: `This worker runs ${atOnce} of this activity, and no more at once. It is repeated.`,
        type: WORKER_BUSY,
        category: ApplicationFailureCategory.BENIGN,
        ...(comesAgainMs && { nextRetryDelay: randomBetween(comesAgainMs) }),
      });
    running += 1;
    try {
      return await run(input);
    } finally {
      running -= 1;
    }
  };
}

const randomBetween = ([least, most]: readonly [number, number]): number => least + Math.random() * (most - least);

export type AnyActivity = (input: never) => Promise<unknown>;

/** What is reported of each run of an activity. */
type Reports = {
  readonly done: (activity: string, input: unknown, result: unknown, durationMs: number) => void;
  /** Gets the original error. */
  readonly failed: (activity: string, input: unknown, error: unknown, durationMs: number) => void;
};

/** Wraps each activity of a group so that it fails by this rule, and is reported. */
export function withReports<T extends Record<string, AnyActivity>>(group: T, { done, failed }: Reports): T {
  const wrapped = Object.entries(group).map(([name, run]) => [
    name,
    async (input: never) => {
      const begun = performance.now();
      const durationMs = (): number => Math.round(performance.now() - begun);
      try {
        const result = await run(input);
        done(name, input, result, durationMs());
        return result;
      } catch (error) {
        failed(name, input, error, durationMs());
        throw failureOf(error);
      }
    },
  ]);
  return Object.fromEntries(wrapped) as T;
}
