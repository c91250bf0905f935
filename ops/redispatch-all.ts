/**
 * `redispatch --all`: starts the workflow of everything that is open, or signals it if it runs. For an empty Temporal
 * namespace: after a restore, or when Temporal has lost its own data.
 */
import type { Tx } from '../db/client.ts';
import { type AuditAction, insertAuditEntries } from '../db/queries/audit.ts';
import {
  listOpenDeliveries,
  listOpenSettlements,
  listOpenVerifications,
  type OpenObject,
} from '../db/queries/operator.ts';
import { enqueue } from '../db/queries/outbox.ts';
import { EXIT, type ExitCode } from '../process/command-line.ts';
import { newRequestId, type OpsDeps } from './command.ts';

const BATCH_SIZE = 100;

type Listing = (tx: Tx, after: string, limit: number, requestId: string) => Promise<OpenObject[]>;

const KINDS: readonly (readonly [string, AuditAction, Listing])[] = [
  ['settlements', 'settlement_redispatch', listOpenSettlements],
  ['verifications', 'verification_redispatch', listOpenVerifications],
  ['deliveries', 'delivery_redispatch', listOpenDeliveries],
];

/** Each batch and its audit entries are one transaction. After an interruption, run it again: a second signal is harmless. */
export async function redispatchAll(
  deps: OpsDeps,
  act: { readonly operator: string; readonly note: string },
): Promise<ExitCode> {
  const requestId = newRequestId();
  const totals = new Map<string, number>();
  for (const [kind, action, listOpen] of KINDS) {
    let total = 0;
    for (let after: string | undefined = ''; after !== undefined; ) {
      const from: string = after;
      const batch = await deps.db.transaction(async (tx) => {
        const open = await listOpen(tx, from, BATCH_SIZE, requestId);
        await enqueue(tx, ...open.map(({ message }) => message));
        const at = deps.now();
        await insertAuditEntries(
          tx,
          open.map(({ orgId, message }) => ({ orgId, objectId: message.objectId, action, ...act, at })),
        );
        return open;
      });
      total += batch.length;
      after = batch.length < BATCH_SIZE ? undefined : batch.at(-1)?.message.objectId;
    }
    totals.set(kind, total);
    deps.print(`${kind}: ${total} will be started or signalled.`);
  }
  deps.printData(Object.fromEntries(totals));
  return EXIT.done;
}
