/**
 * Redispatching everything that is open: for an empty Temporal namespace, after a restore or when Temporal has lost its
 * data. Workflows read the database, so starting or signalling one twice changes nothing.
 */
import type { Queryable, Tx } from '../client.ts';
import { type AuditAction, insertAuditEntries, type OperatorAct } from '../queries/audit.ts';
import { listPendingSubscriptions } from '../queries/operator/pending-subscription.ts';
import {
  listOpenSettlements,
  listOpenVerifications,
  type OpenObject,
  type OpenPage,
} from '../queries/operator/waiting.ts';
import { enqueue } from '../queries/outbox.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';

const BATCH_SIZE = 100;

type Kind = {
  readonly action: AuditAction;
  readonly list: (db: Queryable, page: OpenPage, requestId: string) => Promise<OpenObject[]>;
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
export const redispatchOpen = (
  deps: CommitDeps & Pick<CommandDeps, 'now'>,
  kind: OpenKind,
  act: OperatorAct,
): Promise<number> =>
  inBatches((page) =>
    commit(deps, 'open_objects.redispatch', (tx) => redispatchBatch(tx, KIND[kind], page, { ...act, at: deps.now() })),
  );

/** How many objects of this kind `redispatchOpen` would find. */
export const countOpen = (db: Queryable, kind: OpenKind): Promise<number> =>
  inBatches((page) => KIND[kind].list(db, page, 'none'));

async function inBatches(take: (page: OpenPage) => Promise<readonly OpenObject[]>): Promise<number> {
  let total = 0;
  let after: string | undefined = '';
  while (after !== undefined) {
    const batch = await take({ after, limit: BATCH_SIZE });
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
