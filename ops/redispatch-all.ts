/**
 * `redispatch --all`: has whatever is open started again where it does not run, and rung where it does. For an empty
 * Temporal namespace: after a restore, or when Temporal's own data is lost.
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
import { newRequestId, type OpsDeps, read, readArgs, readOperator, readText } from './command.ts';

export const ALL = '--all';
const BATCH_SIZE = 100;

type Listing = (tx: Tx, after: string, limit: number, requestId: string) => Promise<OpenObject[]>;

const KINDS: readonly (readonly [string, AuditAction, Listing])[] = [
  ['settlements', 'settlement_redispatch', listOpenSettlements],
  ['verifications', 'verification_redispatch', listOpenVerifications],
  ['deliveries', 'delivery_redispatch', listOpenDeliveries],
];

/** A batch is a transaction with its audit entries: stopped anywhere, it is run again, and what was rung twice is as it was. */
export async function redispatchAll(deps: OpsDeps, args: readonly string[]): Promise<void> {
  const given = readArgs(args, ['operator', 'note'], 0);
  const act = read({ operator: readOperator(given.operator), note: readText('--note', given.note) });
  const requestId = newRequestId();
  for (const [what, action, listOpen] of KINDS) {
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
    deps.print(`${what}: ${total} will be started or rung again.`);
  }
}
