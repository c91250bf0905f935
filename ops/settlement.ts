/** Settlements by hand. What is changed is changed as the API and the workflows would, with who did it and why. */
import { cancelSettlementAsOperator, redispatchSettlement } from '../db/commands/settlement.ts';
import { RESOLUTION_OUTCOMES } from '../domain/review.ts';
import { newRequestId, type OpsDeps, oneOf, read, readAct, readArgs, readOperator, readText } from './command.ts';
import { ALL, redispatchAll } from './redispatch-all.ts';
import { runResolve } from './resolve.ts';

const ACT = ['operator', 'note'] as const;

/**
 * `redispatch`: has the settlement's workflow started where it does not run, and signalled where it does. Both are
 * harmless: it reads the database and continues from there. A running dispatcher does it within a second.
 *
 * @throws DomainError `not_found`; `state_conflict` for a settlement that has ended
 */
export async function redispatch(deps: OpsDeps, args: readonly string[]): Promise<void> {
  if (args.includes(ALL))
    return await redispatchAll(
      deps,
      args.filter((arg) => arg !== ALL),
    );
  const { objectId: settlementId, operator, note } = readAct('settlement', readArgs(args, ACT, 1));
  await redispatchSettlement(deps, settlementId, { operator, note, requestId: newRequestId() });
  deps.print(`${settlementId} will be started or rung again.`);
}

/**
 * `cancel`: as the partner could, under the same rules.
 *
 * @throws DomainError `not_found`; `state_conflict` past awaiting_funds
 */
export async function cancel(deps: OpsDeps, args: readonly string[]): Promise<void> {
  const { objectId: settlementId, operator, note } = readAct('settlement', readArgs(args, ACT, 1));
  await cancelSettlementAsOperator(deps, settlementId, { operator, note, requestId: newRequestId() });
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
