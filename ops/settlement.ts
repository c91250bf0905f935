/** Settlements: an operator changes them under the rules of the API and the workflows, with an audit entry. */
import { countOpen, type OpenKind, redispatchOpen } from '../db/commands/redispatch.ts';
import { cancelSettlementAsOperator, recordRefund, redispatchSettlement } from '../db/commands/settlement.ts';
import { findSettlementObject } from '../db/queries/operator/settlement.ts';
import { formatMoney, parseMoney } from '../domain/money.ts';
import { RESOLUTION_OUTCOMES } from '../domain/review.ts';
import { refundDueMinor } from '../domain/settlement/posting.ts';
import { AUDIT_PARAMETERS, changeCommand, newRequestId, type OpsCommand, type OpsDeps } from './command.ts';
import { flag, oneOf, optional, type Reader, required, text } from './command-line/parameter.ts';
import { CommandError, EXIT, type ExitCode, group } from './command-line/program.ts';
import { runResolve } from './resolve.ts';

const KINDS: readonly OpenKind[] = ['settlements', 'verifications', 'subscriptions'];

const settlementId = required('<settlement-id>', 'the settlement', text);
/** One line, as banks print it; it identifies the refund permanently. */
const reference: Reader<string> = {
  read: (given) =>
    /^[\x20-\x7E]{1,140}$/.test(given.trim())
      ? { value: given.trim() }
      : { fault: 'must be 1 to 140 printable ASCII characters.' },
};
const outcome = required('<outcome>', 'what happened to the payout', oneOf(RESOLUTION_OUTCOMES));

export const settlementCommands: readonly OpsCommand[] = [
  changeCommand({
    name: 'redispatch',
    description: 'Starts the workflow of an open settlement, or signals it if it runs. It is safe to repeat.',
    takes: {
      settlementId: optional('<settlement-id>', 'the settlement', text),
      all: flag(
        '--all',
        'everything that is open: settlements, verifications, and subscriptions with retries or a replay',
      ),
      ...AUDIT_PARAMETERS,
    },
    check: ({ settlementId: id, all }) =>
      (id === undefined) === (all === true) ? [] : ['Give either <settlement-id> or --all.'],
    run: async (deps: OpsDeps, { settlementId: id, ...act }) => {
      if (id === undefined) return await redispatchAll(deps, act);
      await redispatchSettlement(deps, id, { ...act, requestId: newRequestId() });
      deps.print(`${id} will be started or signalled.`);
      deps.printData({ settlements: 1, verifications: 0, subscriptions: 0 });
      return EXIT.done;
    },
  }),
  changeCommand({
    name: 'cancel',
    description: 'Cancels a settlement under the same rules as the partner.',
    takes: { settlementId, ...AUDIT_PARAMETERS },
    run: async (deps: OpsDeps, { settlementId: id, ...act }) => {
      const isNew = await cancelSettlementAsOperator(deps, id, { ...act, requestId: newRequestId() });
      deps.print(isNew ? `${id} is canceled.` : `${id} was canceled already.`);
      deps.printData({ settlement_id: id, status: 'canceled' });
      return EXIT.done;
    },
  }),
  changeCommand({
    name: 'resolve',
    description:
      'Decides a payout with an unknown outcome. Outside the local sandbox a second operator confirms it by the same ' +
      "command. The rail's own evidence, once it is there, decides instead.",
    takes: { settlementId, outcome, ...AUDIT_PARAMETERS },
    run: (deps: OpsDeps, { settlementId: id, ...asked }) => runResolve(deps, id, asked),
  }),
  group('refund', 'Money that is due back to payers. The service sends none.', [
    changeCommand({
      name: 'record',
      description: 'Records that money was given back outside of the service. The same reference is recorded once.',
      takes: {
        settlementId,
        amount: required('--amount <amount>', 'in the source currency, such as 70.00', text),
        reference: required('--reference <reference>', "the transfer's reference at the bank", reference),
        ...AUDIT_PARAMETERS,
      },
      run: async (deps: OpsDeps, { settlementId: id, amount, reference: given, ...act }) => {
        const found = await findSettlementObject(deps.db, id);
        if (!found) throw new CommandError(EXIT.refused, 'There is no such settlement.');
        const amountMinor = parseMoney(amount, found.sourceCurrency);
        if (amountMinor === undefined)
          throw new CommandError(EXIT.usage, `--amount must be an amount in ${found.sourceCurrency}, such as 70.00.`);
        const refund = { reference: given, amountMinor };
        const refunded = await recordRefund(deps, id, refund, { ...act, requestId: newRequestId() });
        const due = formatMoney(refundDueMinor(refunded), refunded.sourceCurrency);
        deps.print(`Recorded. Still due back: ${due} ${refunded.sourceCurrency}.`);
        deps.printData({ settlement_id: id, amount_refund_due: due, currency: refunded.sourceCurrency });
        return EXIT.done;
      },
    }),
  ]),
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
    // A preview is one transaction: all batches would keep their locks until its end, and other commands would wait.
    const total = deps.isPreview
      ? await countOpen(deps.db, kind)
      : await redispatchOpen(deps, kind, { ...act, requestId });
    totals.set(kind, total);
    deps.print(`${kind}: ${total} will be started or signalled.`);
  }
  deps.printData(Object.fromEntries(totals));
  return EXIT.done;
}
