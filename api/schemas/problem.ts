/**
 * Problems (RFC 9457, contract §2). A code with members of its own has a schema of its own, so that a client finds them
 * by their names.
 */
import { z } from 'zod';
import { ERROR_CODES, type ErrorCode } from '../../domain/error.ts';
import { scope } from './api-key.ts';
import { constant, EXAMPLE_ID, openEnum, outputText } from './common.ts';
import { ClosedGate } from './launch-gate.ts';

const Code = openEnum('ErrorCode', ERROR_CODES, 'The kind of a problem. Branch on it.');

const members = {
  type: outputText('`/problems/` and the code: a page for people.', '/problems/not_found'),
  title: outputText('The problem in a few words.', 'Not found'),
  status: z.int().meta({ description: 'The HTTP status.', example: 404 }),
  detail: outputText('The cause, and the next step.', 'There is no such object in your organization.'),
  instance: outputText('The path of the request.', '/v2/settle/stl_unknown'),
  request_id: outputText('The id of the request. Quote it when you report a problem.', 'checkout-7f3a91'),
};

/** What every problem has. Only for the document, which has it once. */
export const ProblemFields = z
  .looseObject(members)
  .meta({ id: 'ProblemFields', description: 'The members of every problem (RFC 9457).' });

export const Problem = z
  .looseObject({ ...members, code: Code.meta({ description: 'The kind of problem. Branch on it.' }) })
  .meta({ id: 'Problem', description: 'Every error answer but 422 (RFC 9457).' });

type ExtendedProblem = { readonly schema: z.ZodObject; readonly example: Readonly<Record<string, unknown>> };

/** @param extras the members in addition to those of every problem */
const problemOf = (
  { id, code, description }: { readonly id: string; readonly code: ErrorCode; readonly description: string },
  extras: z.ZodRawShape,
  example: Readonly<Record<string, unknown>>,
): ExtendedProblem => ({
  schema: z
    .looseObject({ ...members, code: constant(code, 'The kind of problem.'), ...extras })
    .meta({ id, description }),
  example,
});

/** The codes whose problems have more members. */
export const EXTENDED_PROBLEMS: Partial<Record<ErrorCode, ExtendedProblem>> = {
  scope_insufficient: problemOf(
    { id: 'ScopeInsufficientProblem', code: 'scope_insufficient', description: 'The key may not do this.' },
    { required_scope: scope('The least scope that may.') },
    { required_scope: 'settle' },
  ),
  idempotency_key_reused: problemOf(
    {
      id: 'IdempotencyKeyReusedProblem',
      code: 'idempotency_key_reused',
      description: 'The key belongs to another command.',
    },
    {
      mismatch: z.array(z.string()).meta({
        description: 'The fields of the body that differ; empty if only the bytes do.',
        example: ['amount'],
      }),
    },
    { mismatch: ['amount'] },
  ),
  not_found: problemOf(
    { id: 'NotFoundProblem', code: 'not_found', description: 'Your organization has no such object.' },
    {
      field: outputText('The field of the body that has the id. Absent if the path has it.', 'recipient_id').optional(),
    },
    {},
  ),
  state_conflict: problemOf(
    { id: 'StateConflictProblem', code: 'state_conflict', description: "The object's state does not allow this." },
    {
      current_state: outputText('The state that forbids it.', 'settled'),
      replay_id: outputText('The replay that runs.', EXAMPLE_ID).optional(),
      verification_id: outputText('The verification that is in this state.', EXAMPLE_ID).optional(),
      rotated_to: outputText('The `key_id` of the key that took the place of this one.', EXAMPLE_ID).optional(),
    },
    { current_state: 'settled' },
  ),
  quota_exceeded: problemOf(
    { id: 'QuotaExceededProblem', code: 'quota_exceeded', description: 'A quota is used up.' },
    { quota: outputText('The quota.', 'redeliveries_per_day') },
    { quota: 'redeliveries_per_day' },
  ),
  launch_gates_closed: problemOf(
    { id: 'LaunchGatesClosedProblem', code: 'launch_gates_closed', description: 'Launch gates are closed.' },
    { gates: z.array(ClosedGate).meta({ description: 'Every closed gate.' }) },
    { gates: [{ gate: 'rail_admission', reason: 'no_evidence' }] },
  ),
};
