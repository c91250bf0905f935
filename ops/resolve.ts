/**
 * Resolves the review of a settlement (contract §6): sends the workflow the same Temporal Update that Temporal UI offers.
 * If somebody decided before, it reports that decision.
 */
import { type Client, WorkflowNotFoundError, WorkflowUpdateFailedError } from '@temporalio/client';
import type { Resolution } from '../domain/review.ts';
import type { SettlementStatus } from '../domain/settlement.ts';
import { settlementWorkflowId } from '../domain/workflow-id.ts';
import { resolveReview } from '../workflows/contract.ts';

const CALL_TIMEOUT_MS = 30_000;
const STATUS_OF: Record<Resolution['outcome'], SettlementStatus> = { paid: 'settled', refused: 'failed' };

/** @returns 0 when the settlement is now as the operator says, 1 when it was refused or decided otherwise before */
export async function runResolve(
  { client, print }: { readonly client: Client; readonly print: (line: string) => void },
  settlementId: string,
  resolution: Resolution,
): Promise<number> {
  const outcome = await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
    update(client, settlementId, resolution),
  );
  if ('refusal' in outcome) {
    print(`Not resolved: ${outcome.refusal}`);
    return 1;
  }
  const agrees = outcome.status === STATUS_OF[resolution.outcome];
  print(
    agrees ? `${settlementId} is ${outcome.status}.` : `Not resolved: ${settlementId} is ${outcome.status} already.`,
  );
  return agrees ? 0 : 1;
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
