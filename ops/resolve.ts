/**
 * Resolves the review of a settlement (contract §6). Operators agree in the database; a Temporal Update then makes the
 * settlement's run carry it out. If the rail's own evidence has come, it decides, and the command says so.
 */
import { type Client, WorkflowNotFoundError, WorkflowUpdateFailedError } from '@temporalio/client';
import { requestResolution } from '../db/commands/review.ts';
import { DomainError } from '../domain/error.ts';
import type { Resolution } from '../domain/review.ts';
import type { SettlementStatus } from '../domain/settlement/state.ts';
import { settlementWorkflowId } from '../domain/workflow-id.ts';
import { resolveReview } from '../workflows/contract.ts';
import type { OpsDeps } from './command.ts';
import { EXIT, type ExitCode } from './command-line/program.ts';

const CALL_TIMEOUT_MS = 30_000;
const STATUS_OF: Record<Resolution['outcome'], SettlementStatus> = { paid: 'settled', refused: 'failed' };

type Asked = Resolution & { readonly operator: string; readonly note: string };

/** @returns `refused` when the settlement is not in review, or has another outcome */
export async function runResolve(deps: OpsDeps, settlementId: string, asked: Asked): Promise<ExitCode> {
  const { print, printData, warn } = deps;
  const resolution = await ask(deps, settlementId, asked);
  if ('refusal' in resolution) {
    warn(`Not resolved: ${resolution.refusal}`);
    return EXIT.refused;
  }
  const { status } = resolution;
  printData({ settlement_id: settlementId, status });
  if (status === 'needs_review') {
    print(`Requested: ${settlementId} was ${asked.outcome}. Another operator confirms it by the same command.`);
    return EXIT.done;
  }
  if (status !== STATUS_OF[asked.outcome]) {
    warn(`Not resolved: ${settlementId} is ${status}: the rail's own evidence, or an earlier decision, decided.`);
    return EXIT.refused;
  }
  print(`${settlementId} is ${status}.`);
  return EXIT.done;
}

type Resolved = { readonly status: SettlementStatus } | { readonly refusal: string };

async function ask(deps: OpsDeps, settlementId: string, asked: Asked): Promise<Resolved> {
  try {
    const request = await requestResolution(deps, settlementId, asked);
    if (request.agreedAt === null) return { status: 'needs_review' };
    return deps.isPreview === true ? { status: STATUS_OF[request.outcome] } : await update(deps.client(), settlementId);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    if (error.code === 'not_found') return { refusal: 'There is no such settlement.' };
    const status = STATUS_OF[asked.outcome];
    return error.extras['current_state'] === status ? { status } : { refusal: error.detail };
  }
}

/** Makes the run carry out what is agreed. */
async function update(client: Client, settlementId: string): Promise<Resolved> {
  const handle = client.workflow.getHandle(settlementWorkflowId(settlementId));
  try {
    return await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
      handle.executeUpdate(resolveReview, { updateId: `resolve-review:${settlementId}` }),
    );
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError) return { refusal: rootCause(error).message };
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    return {
      refusal: 'It is agreed, but no run carries it out. A sweep starts one within a minute; then repeat this.',
    };
  }
}

/** An activity's failure is inside of the update's. */
const rootCause = (error: Error): Error => (error.cause instanceof Error ? rootCause(error.cause) : error);
