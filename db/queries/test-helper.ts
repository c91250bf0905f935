/** What test helpers commit (contract §6). The settlement's workflow and the simulator act on it. */
import { DomainError } from '../../domain/error.ts';
import { foldFunding } from '../../domain/evidence.ts';
import { settlementMessage } from '../../domain/outbox.ts';
import { type SandboxCommand, type SandboxEvent, sandboxCommand } from '../../domain/sandbox/event.ts';
import { isTerminal, type Settlement, settlementTime } from '../../domain/settlement.ts';
import type { Tx } from '../client.ts';
import { newId } from '../id.ts';
import { listPendingEvidence } from './evidence.ts';
import { enqueue } from './outbox.ts';
import { advanceClock, lockSettlement } from './settlement.ts';

async function getLocked(tx: Tx, orgId: string, settlementId: string): Promise<Settlement> {
  const settlement = await lockSettlement(tx, orgId, settlementId);
  if (!settlement) throw new DomainError('not_found');
  return settlement;
}

/**
 * Accepts the sending of one provider event; each accepted request is one event.
 *
 * @throws DomainError `not_found`, `state_conflict`; ValidationError
 */
export async function acceptSandboxEvent(
  tx: Tx,
  orgId: string,
  settlementId: string,
  asked: { readonly event: SandboxEvent; readonly amount?: string | undefined; readonly requestId: string },
): Promise<SandboxCommand & { readonly commandId: string; readonly settlement: Settlement }> {
  const settlement = await getLocked(tx, orgId, settlementId);
  const { receivedMinor } = foldFunding(settlement, await listPendingEvidence(tx, settlementId));
  const command = sandboxCommand(settlement, asked, receivedMinor);
  const commandId = newId();
  const context = { orgId, settlementId, event: command.event, amountMinor: String(command.amountMinor) };
  await enqueue(tx, { kind: 'sandbox_event', objectId: commandId, signal: null, context, requestId: asked.requestId });
  return { ...command, commandId, settlement };
}

/**
 * Moves a settlement's own clock and rings its workflow.
 *
 * @param move `byMs` undefined: to the end of the current wait; `now` is real time
 * @throws DomainError `not_found`; `state_conflict` when it has ended, or waits for nothing that a clock ends
 */
export async function advanceSettlement(
  tx: Tx,
  orgId: string,
  settlementId: string,
  move: { readonly byMs: number | undefined; readonly now: Date; readonly requestId: string },
): Promise<Settlement> {
  const settlement = await getLocked(tx, orgId, settlementId);
  const remainingMs =
    settlement.expiresAt === null
      ? undefined
      : settlement.expiresAt.getTime() - settlementTime(settlement, move.now).getTime();
  const byMs = move.byMs ?? remainingMs;
  if (isTerminal(settlement.status) || byMs === undefined)
    throw new DomainError('state_conflict', { current_state: settlement.status });
  const advanced = await advanceClock(tx, settlement, Math.max(0, byMs));
  await enqueue(tx, settlementMessage(advanced, 'clockAdvanced', move.requestId));
  return advanced;
}
