/**
 * Redispatching everything that is open: for an empty Temporal namespace, after a restore or when Temporal has lost its
 * data. Workflows read the database, so starting or signalling one twice changes nothing.
 */
import type { Tx } from '../client.ts';
import { type AuditAction, insertAuditEntries, type OperatorAct } from '../queries/audit.ts';
import {
  listOpenSettlements,
  listOpenVerifications,
  listPendingSubscriptions,
  type OpenObject,
  type OpenPage,
} from '../queries/operator/waiting.ts';
import { enqueue } from '../queries/outbox.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';

const BATCH_SIZE = 100;

type Kind = {
  readonly action: AuditAction;
  readonly list: (tx: Tx, page: OpenPage, requestId: string) => Promise<OpenObject[]>;
};

const KIND = {
  settlements: { action: 'settlement_redispatch', list: listOpenSettlements },
  verifications: { action: 'verification_redispatch', list: listOpenVerifications },
  subscriptions: { action: 'subscription_redispatch', list: listPendingSubscriptions },
} as const satisfies Record<string, Kind>;
export type OpenKind = keyof typeof KIND;

/**
 * Starts the workflow of every open object of this kind, or signals it if it runs. A batch and its audit entries are
 * one transaction: after an interruption, run it again.
 *
 * @returns how many objects are open
 */
export async function redispatchOpen(
  deps: CommitDeps & Pick<CommandDeps, 'now'>,
  kind: OpenKind,
  act: OperatorAct,
): Promise<number> {
  let total = 0;
  let after: string | undefined = '';
  while (after !== undefined) {
    const page: OpenPage = { after, limit: BATCH_SIZE };
    const batch = await commit(deps, 'open_objects.redispatch', (tx) =>
      redispatchBatch(tx, KIND[kind], page, { ...act, at: deps.now() }),
    );
    total += batch.length;
    after = batch.length < BATCH_SIZE ? undefined : batch.at(-1)?.message.objectId;
  }
  return total;
}

async function redispatchBatch(
  tx: Tx,
  { action, list }: Kind,
  page: OpenPage,
  { requestId, ...entry }: OperatorAct & { readonly at: Date },
): Promise<OpenObject[]> {
  const open = await list(tx, page, requestId);
  await enqueue(tx, ...open.map(({ message }) => message));
  await insertAuditEntries(
    tx,
    open.map(({ orgId, message }) => ({ orgId, objectId: message.objectId, action, ...entry })),
  );
  return open;
}
