/** Settlements: an operator changes them under the rules of the API and the workflows, with an audit entry. */
import { type OpenKind, redispatchOpen } from '../db/commands/redispatch.ts';
import { cancelSettlementAsOperator, redispatchSettlement } from '../db/commands/settlement.ts';
import { RESOLUTION_OUTCOMES } from '../domain/review.ts';
import { EXIT, type ExitCode } from '../process/command-line.ts';
import { flag, oneOf, optional, required, text } from '../process/command-parameter.ts';
import { ACT, deed, newRequestId, type OpsCommand, type OpsDeps } from './command.ts';
import { previewResolve, runResolve } from './resolve.ts';

const KINDS: readonly OpenKind[] = ['settlements', 'verifications', 'subscriptions'];

const settlementId = required('<settlement-id>', 'the settlement', text);
const outcome = required('<outcome>', 'what happened to the payout', oneOf(RESOLUTION_OUTCOMES));

export const settlementCommands: readonly OpsCommand[] = [
  deed({
    name: 'redispatch',
    description: 'Starts the workflow of an open settlement, or signals it if it runs. It is safe to repeat.',
    takes: {
      settlementId: optional('<settlement-id>', 'the settlement', text),
      all: flag('--all', 'everything that is open: settlements, verifications and deliveries'),
      ...ACT,
    },
    check: ({ settlementId: id, all }) =>
      (id === undefined) === (all === true) ? [] : ['Give either <settlement-id> or --all.'],
    run: async (deps: OpsDeps, { settlementId: id, ...act }) => {
      if (id === undefined) return await redispatchAll(deps, act);
      await redispatchSettlement(deps, id, { ...act, requestId: newRequestId() });
      deps.print(`${id} will be started or signalled.`);
      deps.printData({ settlements: 1, verifications: 0, deliveries: 0 });
      return EXIT.done;
    },
  }),
  deed({
    name: 'cancel',
    description: 'Cancels a settlement under the same rules as the partner.',
    takes: { settlementId, ...ACT },
    run: async (deps: OpsDeps, { settlementId: id, ...act }) => {
      await cancelSettlementAsOperator(deps, id, { ...act, requestId: newRequestId() });
      deps.print(`${id} is canceled.`);
      deps.printData({ settlement_id: id, status: 'canceled' });
      return EXIT.done;
    },
  }),
  deed({
    name: 'resolve',
    description: 'Decides a payout with an unknown outcome. The workflow then moves the settlement.',
    takes: { settlementId, outcome, ...ACT },
    run: async (deps: OpsDeps, { settlementId: id, ...resolution }) =>
      deps.isPreview === true
        ? await previewResolve(deps, id, resolution.outcome)
        : await runResolve({ ...deps, client: deps.client() }, id, resolution),
  }),
];

/**
 * `redispatch --all`: for an empty Temporal namespace, after a restore or when Temporal has lost its own data. After an
 * interruption, run it again: a second signal is harmless.
 */
async function redispatchAll(
  deps: OpsDeps,
  act: { readonly operator: string; readonly note: string },
): Promise<ExitCode> {
  const requestId = newRequestId();
  const totals = new Map<OpenKind, number>();
  for (const kind of KINDS) {
    const total = await redispatchOpen(deps, kind, { ...act, requestId });
    totals.set(kind, total);
    deps.print(`${kind}: ${total} will be started or signalled.`);
  }
  deps.printData(Object.fromEntries(totals));
  return EXIT.done;
}
