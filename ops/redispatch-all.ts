/**
 * `redispatch --all`: starts the workflow of everything that is open, or signals it if it runs. For an empty Temporal
 * namespace: after a restore, or when Temporal has lost its own data.
 */
import { type OpenKind, redispatchOpen } from '../db/commands/redispatch.ts';
import { EXIT, type ExitCode } from '../process/command-line.ts';
import { newRequestId, type OpsDeps } from './command.ts';

const KINDS: readonly OpenKind[] = ['settlements', 'verifications', 'deliveries'];

/** After an interruption, run it again: a second signal is harmless. */
export async function redispatchAll(
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
