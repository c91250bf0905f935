/**
 * `resolve`: an operator says what became of a payout that nobody answered for (contract §6), by the same Temporal
 * Update that Temporal UI offers. Said twice, or after somebody else, it tells what was decided.
 */
import { parseArgs } from 'node:util';
import { type Client, WorkflowNotFoundError, WorkflowUpdateFailedError } from '@temporalio/client';
import { loadTemporalConfig } from '../../config.ts';
import { RESOLUTION_OUTCOMES, type Resolution, resolutionFault } from '../../domain/review.ts';
import type { SettlementStatus } from '../../domain/settlement.ts';
import { connectTemporal } from '../../process/temporal.ts';
import { resolveReview, settlementWorkflowId } from '../../workflows/contract.ts';
import { nameRunningStack } from '../stack/state.ts';
import type { SandboxCommand } from './command.ts';

const CALL_TIMEOUT_MS = 30_000;
const STATUS_OF: Record<Resolution['outcome'], SettlementStatus> = { paid: 'settled', refused: 'failed' };

export const resolve: SandboxCommand = {
  usage: 'resolve <settlement_id> paid|refused --operator NAME --note TEXT',
  run: async (args) => {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { operator: { type: 'string' }, note: { type: 'string' } },
    });
    const [settlementId = '', word] = positionals;
    const { operator = '', note = '' } = values;
    const outcome = RESOLUTION_OUTCOMES.find((candidate) => candidate === word);
    const fault = resolutionFault({ outcome, operator, note });
    if (outcome === undefined || fault !== undefined) {
      console.error(`Not resolved: ${fault}.`);
      return 1;
    }
    const TEMPORAL_ADDRESS = process.env['TEMPORAL_ADDRESS'] || nameRunningStack()?.temporalAddress;
    if (!TEMPORAL_ADDRESS) {
      console.error('No stack is running in this clone: run `npm start` in another terminal, or set TEMPORAL_ADDRESS.');
      return 1;
    }
    const temporal = connectTemporal(loadTemporalConfig({ ...process.env, TEMPORAL_ADDRESS }));
    try {
      return await runResolve({ client: temporal.client, print: console.log }, settlementId, { outcome, operator, note });
    } finally {
      await temporal.close();
    }
  },
};

/** @returns 0 when the settlement is now as the operator says, 1 when it was refused or decided otherwise before */
export async function runResolve(
  { client, print }: { readonly client: Client; readonly print: (line: string) => void },
  settlementId: string,
  resolution: Resolution,
): Promise<number> {
  const outcome = await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () => update(client, settlementId, resolution));
  if ('refusal' in outcome) {
    print(`Not resolved: ${outcome.refusal}`);
    return 1;
  }
  const agrees = outcome.status === STATUS_OF[resolution.outcome];
  print(agrees ? `${settlementId} is ${outcome.status}.` : `Not resolved: ${settlementId} is ${outcome.status} already.`);
  return agrees ? 0 : 1;
}

async function update(client: Client, settlementId: string, resolution: Resolution): Promise<{ status: SettlementStatus } | { refusal: string }> {
  const handle = client.workflow.getHandle(settlementWorkflowId(settlementId));
  try {
    return await handle.executeUpdate(resolveReview, { args: [resolution], updateId: `resolve-review:${settlementId}` });
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError) return { refusal: error.cause?.message ?? 'It was refused.' };
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
  try {
    return await handle.result();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { refusal: 'There is no such settlement, or its history is no longer kept.' };
    throw error;
  }
}
