/**
 * What is done to a settlement outside of its run (contract §6): it is canceled, a refund is recorded, its workflow is
 * dispatched again. Every command locks the settlement's row first. That orders it with evidence that arrives at the
 * same moment: the first commit decides.
 */
import { stateConflict } from '../../domain/error.ts';
import { formatMoney } from '../../domain/money.ts';
import { settlementMessage } from '../../domain/outbox.ts';
import { type Decision, decide } from '../../domain/settlement/decide.ts';
import type { HappeningOf } from '../../domain/settlement/happening.ts';
import { isTerminal, type Settlement, settlementTime } from '../../domain/settlement/state.ts';
import type { Tx } from '../client.ts';
import { insertAuditEntry, type OperatorAct } from '../queries/audit.ts';
import { enqueue } from '../queries/outbox.ts';
import { readRefundFacts } from '../queries/refund.ts';
import { lockOperatedSettlement, lockSettlement } from '../queries/settlement.ts';
import { writeChange } from '../queries/settlement-change.ts';
import { readKnownFacts } from '../queries/settlement-facts.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';

type Deps = CommitDeps & Pick<CommandDeps, 'now'>;
type OperatorDeps = Deps & Pick<CommandDeps, 'runtime'>;

/**
 * Writes what was decided.
 *
 * @returns the settlement as it now is
 * @throws DomainError `state_conflict` for a refusal
 */
export async function writeDecision(tx: Tx, decision: Decision, requestId: string): Promise<Settlement> {
  if ('refusal' in decision) {
    const { currentState, detail } = decision.refusal;
    throw stateConflict(currentState, detail);
  }
  return await writeChange(tx, decision, requestId);
}

/**
 * Cancels a settlement for its partner and signals its workflow. Money that came in is booked as due back. Canceling a
 * canceled settlement changes nothing.
 *
 * @throws DomainError `not_found`; `state_conflict` past awaiting_funds, or when committed evidence has decided already
 */
export async function cancelSettlement(
  deps: Deps,
  orgId: string,
  settlementId: string,
  requestId: string,
): Promise<Settlement> {
  return await commit(deps, 'settlement.cancel', async (tx) => {
    const settlement = await lockSettlement(tx, orgId, settlementId);
    const decision = await decideCancellation(tx, settlement, { by: 'partner', signals: true }, deps.now());
    return await writeDecision(tx, decision, requestId);
  });
}

/**
 * As `cancelSettlement`, for an operator, who knows no organization; with an audit entry.
 *
 * @returns false when it was canceled already: nothing is written
 */
export async function cancelSettlementAsOperator(
  deps: OperatorDeps,
  settlementId: string,
  { operator, note, requestId }: OperatorAct,
): Promise<boolean> {
  return await commit(deps, 'settlement.cancel_as_operator', async (tx) => {
    const now = deps.now();
    const settlement = await lockOperatedSettlement(tx, deps, settlementId);
    const decision = await decideCancellation(tx, settlement, { by: 'operator', signals: true }, now);
    if ((await writeDecision(tx, decision, requestId)) === settlement) return false;
    const action = 'settlement_cancel';
    await insertAuditEntry(tx, settlement.orgId, { objectId: settlementId, action, operator, note, at: now });
    return true;
  });
}

/**
 * As `cancelSettlementAsOperator`, for a cancellation of the workflow's run in Temporal UI (contract §6). The workflow
 * does not learn who requested it. Where the settlement cannot be canceled, nothing changes. The workflow itself calls
 * this, so it is not signalled.
 *
 * @param now the workflow's time
 */
export async function cancelSettlementOnRequest(
  deps: CommitDeps,
  orgId: string,
  settlementId: string,
  now: Date,
): Promise<Settlement> {
  return await commit(deps, 'settlement.cancel_on_request', async (tx) => {
    const settlement = await lockSettlement(tx, orgId, settlementId);
    const decision = await decideCancellation(tx, settlement, { by: 'operator', signals: false }, now);
    if ('refusal' in decision || settlement.status === 'canceled') return settlement;
    const canceled = await writeChange(tx, decision, settlement.requestId);
    const act = { action: 'settlement_cancel', operator: 'unknown', note: 'Temporal UI' } as const;
    await insertAuditEntry(tx, orgId, { objectId: settlementId, ...act, at: now });
    return canceled;
  });
}

async function decideCancellation(
  tx: Tx,
  settlement: Settlement,
  cancellation: Omit<HappeningOf<'cancel'>, 'type'>,
  now: Date,
): Promise<Decision> {
  const facts = { settlement, ...(await readKnownFacts(tx, settlement.settlementId)) };
  return decide(facts, { type: 'cancel', ...cancellation }, settlementTime(settlement, now));
}

/**
 * Records that an operator gave money back outside of the service, with an audit entry. A repeated
 * record of the same reference and amount writes nothing.
 *
 * @param refund `reference` of the transfer, as the bank shows it; minor units of the source currency
 * @throws DomainError `not_found`; `state_conflict` when more is given back than is due, or the reference is taken
 */
export async function recordRefund(
  deps: OperatorDeps,
  settlementId: string,
  refund: Omit<HappeningOf<'refund'>, 'type'>,
  { operator, note, requestId }: OperatorAct,
): Promise<Settlement> {
  return await commit(deps, 'settlement.record_refund', async (tx) => {
    const now = deps.now();
    const settlement = await lockOperatedSettlement(tx, deps, settlementId);
    const facts = { settlement, ...(await readRefundFacts(tx, settlementId)) };
    const decision = decide(facts, { type: 'refund', ...refund }, settlementTime(settlement, now));
    const refunded = await writeDecision(tx, decision, requestId);
    if (refunded === settlement) return settlement;
    const { reference, amountMinor } = refund;
    const what = `${formatMoney(amountMinor, settlement.sourceCurrency)} ${settlement.sourceCurrency} by ${reference}`;
    const act = { action: 'refund_record', operator, note: `${what}: ${note}` } as const;
    await insertAuditEntry(tx, settlement.orgId, { objectId: settlementId, ...act, at: now });
    return refunded;
  });
}

/**
 * Starts the workflow of a settlement, or signals it if it runs. The workflow reads the database and continues from
 * there, so this may be repeated. Writes an audit entry.
 *
 * @throws DomainError `not_found`; `state_conflict` for a settlement that has ended
 */
export async function redispatchSettlement(
  deps: OperatorDeps,
  settlementId: string,
  { operator, note, requestId }: OperatorAct,
): Promise<void> {
  await commit(deps, 'settlement.redispatch', async (tx) => {
    const settlement = await lockOperatedSettlement(tx, deps, settlementId);
    if (isTerminal(settlement.status)) {
      const { status } = settlement;
      throw stateConflict(status, `The settlement has ended: it is ${status}.`);
    }
    await enqueue(tx, settlementMessage(settlement, 'redispatched', requestId));
    const action = 'settlement_redispatch';
    await insertAuditEntry(tx, settlement.orgId, { objectId: settlementId, action, operator, note, at: deps.now() });
  });
}
