/**
 * Resolves the review of a settlement (contract §6) with a Temporal Update, which Temporal UI can send as well. If
 * somebody has decided before, it reports that decision.
 */
import { type Client, WorkflowNotFoundError, WorkflowUpdateFailedError } from '@temporalio/client';
import type { Queryable } from '../db/client.ts';
import { findSettlementObject } from '../db/queries/operator-object.ts';
import type { Resolution } from '../domain/review.ts';
import type { SettlementStatus } from '../domain/settlement.ts';
import { settlementWorkflowId } from '../domain/workflow-id.ts';
import { EXIT, type ExitCode, type Printer } from '../process/command-line.ts';
import { resolveReview } from '../workflows/contract.ts';

const CALL_TIMEOUT_MS = 30_000;
const STATUS_OF: Record<Resolution['outcome'], SettlementStatus> = { paid: 'settled', refused: 'failed' };

/** @returns `refused` when the settlement is not in review, or has another outcome */
export async function runResolve(
  { client, print, printData, warn }: Printer & { readonly client: Client },
  settlementId: string,
  resolution: Resolution,
): Promise<ExitCode> {
  const result = await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
    update(client, settlementId, resolution),
  );
  if ('refusal' in result) {
    warn(`Not resolved: ${result.refusal}`);
    return EXIT.refused;
  }
  const { status } = result;
  printData({ settlement_id: settlementId, status });
  if (status !== STATUS_OF[resolution.outcome]) {
    warn(`Not resolved: ${settlementId} is ${status} already.`);
    return EXIT.refused;
  }
  print(`${settlementId} is ${status}.`);
  return EXIT.done;
}

/** The workflow decides; the row shows whether it would accept the decision. */
export async function previewResolve(
  { db, print, printData, warn }: Printer & { readonly db: Queryable },
  settlementId: string,
  outcome: Resolution['outcome'],
): Promise<ExitCode> {
  const settlement = await findSettlementObject(db, settlementId);
  if (settlement?.status !== 'needs_review') {
    warn(`Not resolved: ${settlementId} is ${settlement === undefined ? 'unknown' : settlement.status}.`);
    return EXIT.refused;
  }
  printData({ settlement_id: settlementId, status: STATUS_OF[outcome] });
  print(`${settlementId} is ${STATUS_OF[outcome]}.`);
  return EXIT.done;
}

async function update(
  client: Client,
  settlementId: string,
  resolution: Resolution,
): Promise<{ status: SettlementStatus } | { refusal: string }> {
  const handle = client.workflow.getHandle(settlementWorkflowId(settlementId));
  try {
    return await handle.executeUpdate(resolveReview, {
      args: [resolution],
      updateId: `resolve-review:${settlementId}`,
    });
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError) return { refusal: error.cause?.message ?? 'It was refused.' };
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
  try {
    return await handle.result();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError)
      return { refusal: 'There is no such settlement, or its history is no longer kept.' };
    throw error;
  }
}
