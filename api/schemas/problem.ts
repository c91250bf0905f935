/**
 * Problems (RFC 9457, contract §2). A code with members of its own has a schema of its own, so that a client finds them
 * by their names.
 */
import { z } from 'zod';
import { ERROR_CODES, type ErrorCode } from '../../domain/error.ts';
import { scope } from './api-key.ts';
import { constant, growing, objectId, shown } from './common.ts';
import { ClosedGate } from './launch-gate.ts';

const Code = growing('ErrorCode', ERROR_CODES, 'The kind of a problem. Branch on it.');

const members = {
  type: shown('`/problems/` and the code: a page for people.', '/problems/not_found'),
  title: shown('The problem in a few words.', 'Not found'),
  status: z.int().meta({ description: 'The HTTP status.', example: 404 }),
  detail: shown('The cause, and the next step.', 'There is no such object in your organization.'),
  instance: shown('The path of the request.', '/v2/settle/stl_unknown'),
  request_id: objectId('The id of the request. Quote it when you report a problem.'),
};

export const Problem = z
  .looseObject({ ...members, code: Code.meta({ description: 'The kind of problem. Branch on it.' }) })
  .meta({ id: 'Problem', description: 'Every error answer but 422 (RFC 9457).' });

const problemOf = (id: string, code: ErrorCode, description: string, extras: z.ZodRawShape) =>
  z.looseObject({ ...members, code: constant(code, 'The kind of problem.'), ...extras }).meta({ id, description });

/** The codes whose problems have more members. */
export const EXTENDED_PROBLEMS: Partial<Record<ErrorCode, z.ZodObject>> = {
  scope_insufficient: problemOf('ScopeInsufficientProblem', 'scope_insufficient', 'The key may not do this.', {
    required_scope: scope('The least scope that may.'),
  }),
  idempotency_key_reused: problemOf(
    'IdempotencyKeyReusedProblem',
    'idempotency_key_reused',
    'The key belongs to another command.',
    {
      mismatch: z
        .array(z.string())
        .optional()
        .meta({
          description: 'The fields of the body that differ; empty if only the bytes do.',
          example: ['amount'],
        }),
    },
  ),
  state_conflict: problemOf('StateConflictProblem', 'state_conflict', "The object's state does not allow this.", {
    current_state: shown('The state that forbids it.', 'settled').optional(),
  }),
  launch_gates_closed: problemOf('LaunchGatesClosedProblem', 'launch_gates_closed', 'Launch gates are closed.', {
    gates: z.array(ClosedGate).meta({ description: 'Every closed gate.' }),
  }),
};
