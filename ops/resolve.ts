/**
 * Resolves the review of a settlement (contract §6). Operators agree in the database, which wakes the settlement's run:
 * it carries out what is agreed, also if this command ends before. The command waits for that by a Temporal Update. If
 * the rail's own evidence has come, it decides, and the command says so.
 */
import {
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { requestResolution } from '../db/commands/review.ts';
import { findSettlementObject } from '../db/queries/operator/settlement.ts';
import { DomainError } from '../domain/error.ts';
import { reviewState } from '../domain/operator-advice.ts';
import type { AgreedResolution, Resolution, ReviewRequest } from '../domain/review.ts';
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
  const resolution = await requestAndWait(deps, settlementId, asked);
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

/** Requests the outcome and, once it is agreed, waits until the settlement's run has carried it out. */
async function requestAndWait(deps: OpsDeps, settlementId: string, asked: Asked): Promise<Resolved> {
  const { outcome } = asked;
  try {
    const { request, earlier } = await requestResolution(deps, settlementId, asked);
    if (request.outcome !== outcome)
      return {
        refusal: `it is ${reviewState(request)}. To carry it out: npm run ops -- resolve ${settlementId} ${request.outcome}`,
      };
    const about = earlier && aboutEarlier(deps, earlier, outcome);
    if (request.agreedAt === null) return { status: 'needs_review', about };
    const agreed = { outcome, at: request.agreedAt };
    const status = deps.isPreview ? STATUS_OF[outcome] : await untilCarriedOut(deps, settlementId, agreed);
    return { status, about };
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
 * Waits until the run has carried out what is agreed.
 *
 * @throws CommandError when it was not carried out in time; the agreement stays
 */
async function untilCarriedOut(
  { client: connect, db }: OpsDeps,
  settlementId: string,
  { outcome, at }: AgreedResolution,
): Promise<SettlementStatus> {
  const client = connect();
  const handle = client.workflow.getHandle(settlementWorkflowId(settlementId));
  // The run answers an id always alike. Another agreement, after a failover that lost this one, has another id.
  const updateId = `resolve-review:${settlementId}:${at.getTime()}`;
  try {
    const { status } = await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
      handle.executeUpdate(resolveReview, { updateId }),
    );
    return status;
  } catch (error) {
    const cause = hindranceOf(error);
    if (cause === undefined) throw error;
    // The run may have ended by it before the update came.
    const settlement = await findSettlementObject(db, settlementId);
    if (settlement && settlement.status !== 'needs_review') return settlement.status;
    const what = `The outcome ${outcome} is agreed and was not carried out yet: repeat this command.`;
    throw new CommandError(EXIT.unavailable, `${what} ${cause}`);
  }
}

/** Why nothing was carried out, if the command can be repeated. */
function hindranceOf(error: unknown): string | undefined {
  if (error instanceof WorkflowNotFoundError) return 'It has no run: a sweep starts one within a minute.';
  if (error instanceof WorkflowUpdateFailedError) return 'Its run has not reviewed the settlement yet.';
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)
    return 'Temporal, or the worker, did not answer in time.';
  return temporalFaultOf(error)?.sentence;
}
