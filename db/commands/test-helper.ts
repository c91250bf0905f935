/**
 * What the test helpers of the local sandbox do to a settlement (contract §6); its workflow and the simulator act on
 * it.
 */
import { stateConflict } from '../../domain/error.ts';
import { sandboxEventMessage, settlementMessage } from '../../domain/outbox.ts';
import { collectsMoney, type SandboxCommand, type SandboxEvent, sandboxCommand } from '../../domain/sandbox/event.ts';
import { isTerminal, type Settlement, settlementTime } from '../../domain/settlement/state.ts';
import { newId } from '../id.ts';
import { enqueue } from '../queries/outbox.ts';
import { addSandboxRequest, advanceClock, lockSettlement, sumSandboxRequestsUnderWay } from '../queries/settlement.ts';
import { type CommitDeps, commit } from './commit.ts';

/**
 * Accepts that the simulator sends one provider event; each accepted request is one event.
 *
 * @param asked `amount` as decimal text in major units; without it, the amount that neither arrived nor is under way
 * @throws DomainError `not_found`, `state_conflict`; ValidationError
 */
export async function sendSandboxEvent(
  deps: CommitDeps,
  orgId: string,
  settlementId: string,
  asked: { readonly event: SandboxEvent; readonly amount?: string | undefined; readonly requestId: string },
): Promise<SandboxCommand & { readonly commandId: string; readonly settlement: Settlement }> {
  return await commit(deps, 'sandbox_event.request', async (tx) => {
    const settlement = await lockSettlement(tx, orgId, settlementId);
    const underWayMinor = await sumSandboxRequestsUnderWay(tx, settlementId);
    const command = { ...sandboxCommand(settlement, asked, underWayMinor), commandId: newId() };
    if (collectsMoney(command.event)) await addSandboxRequest(tx, settlementId, command.amountMinor);
    await enqueue(tx, sandboxEventMessage(command, settlement, asked.requestId));
    return { ...command, settlement };
  });
}

/** A hundred years. After some thousand more, the dates of one settlement fail each statement that reads those of all. */
const AHEAD_MAX_MS = 36_525 * 86_400_000;

/**
 * Moves a settlement's own clock forward and signals its workflow.
 *
 * @param move `byMs` undefined: to the end of the current wait; `now` is real time
 * @throws DomainError `not_found`; `state_conflict` when it has ended, has no end of a wait to go to, or would be too far
 *   ahead
 */
export async function advanceSettlement(
  deps: CommitDeps,
  orgId: string,
  settlementId: string,
  move: { readonly byMs: number | undefined; readonly now: Date; readonly requestId: string },
): Promise<Settlement> {
  return await commit(deps, 'settlement.advance_clock', async (tx) => {
    const settlement = await lockSettlement(tx, orgId, settlementId);
    const byMs = move.byMs ?? remainingMs(settlement, move.now);
    if (isTerminal(settlement.status) || byMs === undefined) throw stateConflict(settlement.status);
    if (settlement.clockOffsetMs + byMs > AHEAD_MAX_MS)
      throw stateConflict(settlement.status, "A settlement's clock is a hundred years ahead at most.");
    const advanced = await advanceClock(tx, settlement, Math.max(0, byMs));
    await enqueue(tx, settlementMessage(advanced, 'clockAdvanced', move.requestId));
    return advanced;
  });
}

/** How long the current wait still lasts, in milliseconds; undefined where it has no time limit. */
const remainingMs = (settlement: Settlement, now: Date): number | undefined =>
  settlement.expiresAt === null
    ? undefined
    : settlement.expiresAt.getTime() - settlementTime(settlement, now).getTime();
