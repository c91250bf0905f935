/** What waits and what has stopped, from PostgreSQL alone: these answer while Temporal is down. */
import {
  listLateDeliveries,
  listStuckOutbox,
  listStuckSettlements,
  listWaitingSettlements,
  listWaitingVerifications,
  type WaitingSettlement,
} from '../db/queries/operator.ts';
import { type OpsDeps, readArgs } from './command.ts';

const LINES_MAX = 200;

/** `waiting`: every settlement and verification that is not at an end; the longest-standing first. */
export async function waiting(deps: OpsDeps, args: readonly string[]): Promise<void> {
  readArgs(args, [], 0);
  const [settlements, verifications] = await Promise.all([
    listWaitingSettlements(deps.db, LINES_MAX),
    listWaitingVerifications(deps.db, LINES_MAX),
  ]);
  printList(deps, 'Settlements', settlements.map(settlementLine));
  printList(
    deps,
    'Verifications',
    verifications.map(({ verificationId, orgId, recipientId, since, expiresAt }) =>
      lineOf(verificationId, `the decision about recipient ${recipientId}`, { orgId, since, expiresAt }),
    ),
  );
}

/** `stuck`: what no process works on although it should; an empty answer is the good one. */
export async function stuck(deps: OpsDeps, args: readonly string[]): Promise<void> {
  readArgs(args, [], 0);
  const now = deps.now();
  const [outbox, settlements, deliveries] = await Promise.all([
    listStuckOutbox(deps.db, LINES_MAX),
    listStuckSettlements(deps.db, now, LINES_MAX),
    listLateDeliveries(deps.db, now, LINES_MAX),
  ]);
  printList(
    deps,
    'Outbox rows older than a minute: is Temporal up, and a dispatcher running?',
    outbox.map(
      ({ kind, objectId, attempts, lastError, since }) =>
        `${kind} ${objectId}: since ${since.toISOString()}, ${attempts} attempts, last ${lastError ?? 'none'}`,
    ),
  );
  printList(
    deps,
    'Settlements that nobody moves: is a worker running? Otherwise redispatch',
    settlements.map(settlementLine),
  );
  printList(
    deps,
    'Deliveries past their time: is a worker running? Otherwise retry-delivery',
    deliveries.map(
      ({ deliveryId, webhookId, orgId, dueAt }) =>
        `${deliveryId} to webhook ${webhookId} of ${orgId}: due since ${dueAt.toISOString()}`,
    ),
  );
}

/** What has to happen before the settlement goes on. */
function waitsFor({ status, paymentMethod, recipientId }: WaitingSettlement): string {
  switch (status) {
    case 'compliance_hold':
      return `the verification of recipient ${recipientId}`;
    case 'awaiting_funds':
      return `${paymentMethod} evidence`;
    case 'paying_out':
      return 'the outcome of the payout';
    case 'needs_review':
      return 'an operator: resolve it as paid or refused';
    default:
      return 'its workflow';
  }
}

const settlementLine = (settlement: WaitingSettlement): string =>
  lineOf(`${settlement.settlementId} ${settlement.status}`, waitsFor(settlement), settlement);

function lineOf(
  what: string,
  cause: string,
  { orgId, since, expiresAt }: { readonly orgId: string; readonly since: Date; readonly expiresAt: Date | null },
): string {
  return `${what}: waits for ${cause}; since ${since.toISOString()}${expiresAt === null ? '' : `, until ${expiresAt.toISOString()}`}; organization ${orgId}`;
}

function printList(deps: OpsDeps, title: string, lines: readonly string[]): void {
  deps.print(
    `${title}: ${lines.length === 0 ? 'none' : lines.length === LINES_MAX ? `the first ${LINES_MAX}` : lines.length}`,
  );
  for (const line of lines) deps.print(`  ${line}`);
}
