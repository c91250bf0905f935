/**
 * How activities fail. An expected refusal never becomes right by repeating it, so its code is the type of a
 * non-retryable failure; everything else is retried by the orchestrator. Messages are constants: what the
 * database says can quote rows, and histories are read by people.
 */
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { DomainError, ValidationError } from '../domain/error.ts';

/** What operators read at a step that is repeated; which dependency it was, the failure's type says. */
const DEPENDENCY_FAILED =
  'A dependency failed: the type says how, the log of the worker has the whole error. The step is repeated by itself; should it stay so, see docs/operations.md.';

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
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown';
  return ApplicationFailure.create({ message: DEPENDENCY_FAILED, type: `dependency:${code}` });
}

type AnyActivity = (input: never) => Promise<unknown>;

/** Wraps each activity of a group so that it fails by the rule above; `report` gets the original error. */
export function withFailures<T extends Record<string, AnyActivity>>(
  group: T,
  report: (error: unknown, activity: string) => void,
): T {
  const wrapped = Object.entries(group).map(([name, run]) => [
    name,
    async (input: never) => {
      try {
        return await run(input);
      } catch (error) {
        report(error, name);
        throw failureOf(error);
      }
    },
  ]);
  return Object.fromEntries(wrapped) as T;
}
