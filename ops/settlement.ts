/** Settlements by hand. What is changed is changed as the API and the workflows would, with who did it and why. */
import type { Tx } from '../db/client.ts';
import { insertAuditEntry } from '../db/queries/audit.ts';
import { enqueue } from '../db/queries/outbox.ts';
import { findSettlementOwner, lockSettlement } from '../db/queries/settlement.ts';
import { cancelSettlement } from '../db/queries/settlement-cancel.ts';
import { DomainError } from '../domain/error.ts';
import { settlementMessage } from '../domain/outbox.ts';
import { RESOLUTION_OUTCOMES } from '../domain/review.ts';
import { isTerminal } from '../domain/settlement.ts';
import { newRequestId, type OpsDeps, oneOf, read, readAct, readArgs, readOperator, readText } from './command.ts';
import { ALL, redispatchAll } from './redispatch-all.ts';
import { runResolve } from './resolve.ts';

const ACT = ['operator', 'note'] as const;

/**
 * `redispatch`: has the settlement's workflow started where it does not run, and rung where it does. Both are harmless:
 * it reads the database and goes on from there. A running dispatcher carries it within a second.
 *
 * @throws DomainError `not_found`; `state_conflict` for a settlement at its end
 */
export async function redispatch(deps: OpsDeps, args: readonly string[]): Promise<void> {
  if (args.includes(ALL))
    return await redispatchAll(
      deps,
      args.filter((arg) => arg !== ALL),
    );
  const { objectId: settlementId, operator, note } = readAct('settlement', readArgs(args, ACT, 1));
  await deps.db.transaction(async (tx) => {
    const orgId = await getOwner(tx, settlementId);
    const settlement = await lockSettlement(tx, orgId, settlementId);
    if (!settlement) throw new DomainError('not_found');
    if (isTerminal(settlement.status))
      throw new DomainError(
        'state_conflict',
        { current_state: settlement.status },
        `It is ${settlement.status}, its end.`,
      );
    await enqueue(tx, settlementMessage(settlement, 'evidenceRecorded', newRequestId()));
    await insertAuditEntry(tx, orgId, {
      objectId: settlementId,
      action: 'settlement_redispatch',
      operator,
      note,
      at: deps.now(),
    });
  });
  deps.print(`${settlementId} will be started or rung again.`);
}

/**
 * `cancel`: as the partner could, under the same rules.
 *
 * @throws DomainError `not_found`; `state_conflict` past awaiting_funds
 */
export async function cancel(deps: OpsDeps, args: readonly string[]): Promise<void> {
  const { objectId: settlementId, operator, note } = readAct('settlement', readArgs(args, ACT, 1));
  await deps.db.transaction(async (tx) => {
    const orgId = await getOwner(tx, settlementId);
    await cancelSettlement(tx, orgId, settlementId, deps.now(), newRequestId(), 'canceled_by_operator');
    await insertAuditEntry(tx, orgId, {
      objectId: settlementId,
      action: 'settlement_cancel',
      operator,
      note,
      at: deps.now(),
    });
  });
  deps.print(`${settlementId} is canceled.`);
}

/**
 * `resolve`: what became of a payout of unknown outcome, by the workflow's Update; the step that moves the settlement
 * writes the audit entry.
 *
 * @returns whether the settlement is now as the operator says
 */
export async function resolve(deps: OpsDeps, args: readonly string[]): Promise<boolean> {
  const given = readArgs(args, ACT, 2);
  const { settlementId, ...resolution } = read({
    settlementId: readText('The settlement id', given.subject),
    outcome: oneOf('outcome', RESOLUTION_OUTCOMES, given.word),
    operator: readOperator(given.operator),
    note: readText('--note', given.note),
  });
  return (await runResolve({ client: deps.client(), print: deps.print }, settlementId, resolution)) === 0;
}

async function getOwner(tx: Tx, settlementId: string): Promise<string> {
  const orgId = await findSettlementOwner(tx, settlementId);
  if (orgId === undefined) throw new DomainError('not_found');
  return orgId;
}
