/**
 * Resolves the review of a settlement (contract §6). Operators agree in the database; a Temporal Update then makes the
 * settlement's run carry it out. If the rail's own evidence has come, it decides, and the command says so.
 */
import {
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { requestResolution } from '../db/commands/review.ts';
import { DomainError } from '../domain/error.ts';
import { reviewState } from '../domain/operator-advice.ts';
import type { Resolution, ReviewRequest } from '../domain/review.ts';
import type { SettlementStatus } from '../domain/settlement/state.ts';
import { settlementWorkflowId } from '../domain/workflow-id.ts';
import { temporalFaultOf } from '../process/temporal-health.ts';
import { resolveReview } from '../workflows/contract.ts';
import type { OpsDeps } from './command.ts';
import { CommandError, EXIT, type ExitCode } from './command-line/program.ts';

const CALL_TIMEOUT_MS = 30_000;
const STATUS_OF: Record<Resolution['outcome'], SettlementStatus> = { paid: 'settled', refused: 'failed' };

type Asked = Resolution & { readonly operator: string; readonly note: string };

/** @returns `refused` when the settlement is not in review, or has another outcome */
export async function runResolve(deps: OpsDeps, settlementId: string, asked: Asked): Promise<ExitCode> {
  const { print, printData, warn } = deps;
  const resolution = await requestAndCarryOut(deps, settlementId, asked);
  if ('refusal' in resolution) {
    warn(`Not resolved: ${resolution.refusal}`);
    return EXIT.refused;
  }
  const { status, about } = resolution;
  printData({ settlement_id: settlementId, status });
  if (status === 'needs_review')
    print(`Requested: ${settlementId} was ${asked.outcome}. Another operator confirms it by the same command.`);
  else if (status === STATUS_OF[asked.outcome]) print(`${settlementId} is ${status}.`);
  else {
    warn(`Not resolved: ${settlementId} is ${status}: the rail's own evidence, or an earlier decision, decided.`);
    return EXIT.refused;
  }
  if (about !== undefined) print(about);
  return EXIT.done;
}

/** `about`: what was requested before. */
type Resolved =
  | { readonly status: SettlementStatus; readonly about?: string | undefined }
  | { readonly refusal: string };

/** Requests the outcome and, once it is agreed, makes the settlement's run carry it out. */
async function requestAndCarryOut(deps: OpsDeps, settlementId: string, asked: Asked): Promise<Resolved> {
  const { outcome } = asked;
  try {
    const { request, earlier } = await requestResolution(deps, settlementId, asked);
    if (request.outcome !== outcome)
      return {
        refusal: `it is ${reviewState(request)}. To carry it out: npm run ops -- resolve ${settlementId} ${request.outcome}`,
      };
    const about = earlier && aboutEarlier(deps, earlier, outcome);
    if (request.agreedAt === null) return { status: 'needs_review', about };
    return {
      ...(deps.isPreview ? { status: STATUS_OF[outcome] } : await carryOut(deps, settlementId, outcome)),
      about,
    };
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    if (error.code === 'not_found') return { refusal: 'There is no such settlement.' };
    const status = STATUS_OF[outcome];
    return error.extras['current_state'] === status ? { status } : { refusal: error.detail };
  }
}

/** The preview also says what it would confirm, or carry out. */
function aboutEarlier({ isPreview }: OpsDeps, earlier: ReviewRequest, outcome: Resolution['outcome']) {
  if (earlier.outcome !== outcome) return `It replaces ${earlier.requestedBy}'s request: ${earlier.outcome}.`;
  return isPreview ? `It is ${reviewState(earlier)}.` : undefined;
}

/**
 * Makes the run carry out what is agreed.
 *
 * @throws CommandError when it was not carried out in time; the agreement stays
 */
async function carryOut(
  { client: connect }: OpsDeps,
  settlementId: string,
  outcome: Resolution['outcome'],
): Promise<Resolved> {
  const client = connect();
  const handle = client.workflow.getHandle(settlementWorkflowId(settlementId));
  try {
    return await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
      handle.executeUpdate(resolveReview, { updateId: `resolve-review:${settlementId}` }),
    );
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError) return { refusal: rootCause(error).message };
    const cause = hindranceOf(error);
    if (cause === undefined) throw error;
    const what = `The outcome ${outcome} is agreed and was not carried out yet: repeat this command.`;
    throw new CommandError(EXIT.unavailable, `${what} ${cause}`);
  }
}

/** Why nothing was carried out, if the command can be repeated. */
function hindranceOf(error: unknown): string | undefined {
  if (error instanceof WorkflowNotFoundError) return 'It has no run: a sweep starts one within a minute.';
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)
    return 'Temporal, or the worker, did not answer in time.';
  return temporalFaultOf(error)?.sentence;
}

/** An activity's failure is inside of the update's. */
const rootCause = (error: Error): Error => (error.cause instanceof Error ? rootCause(error.cause) : error);
