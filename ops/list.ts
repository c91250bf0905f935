/** `list`: what there is, by status, age, corridor, organization and amount; the newest first. */
import { readLongSnapshot, type Tx } from '../db/client.ts';
import { AUDIT_ACTIONS } from '../db/queries/audit.ts';
import {
  listAuditBy,
  listDeliveriesBy,
  listEvidenceBy,
  listKeysBy,
  listPartnersBy,
  listSettlementsBy,
  listSubscriptionsBy,
  SUBSCRIPTION_STATES,
} from '../db/queries/operator/list.ts';
import { API_KEY_STATUSES } from '../domain/api-key.ts';
import { CORRIDOR_IDS } from '../domain/corridor.ts';
import { maskEmail } from '../domain/mask.ts';
import { parseMoney } from '../domain/money.ts';
import { SCOPES } from '../domain/scope.ts';
import { EVIDENCE_KINDS } from '../domain/settlement/evidence.ts';
import { refundDueMinor } from '../domain/settlement/posting.ts';
import { OPEN_STATUSES, SETTLEMENT_STATUSES } from '../domain/settlement/state.ts';
import { DELIVERY_STATUSES } from '../domain/webhook.ts';
import { type OpsCommand, type OpsDeps, operatorReader, timedCommand } from './command.ts';
import {
  flag,
  oneOf,
  optional,
  type Reader,
  repeatable,
  text,
  wholeNumber,
  withDefault,
} from './command-line/parameter.ts';
import { EXIT, type ExitCode, group } from './command-line/program.ts';
import { lineOf, money, type Row } from './report.ts';
import { keyRow, webhookRow } from './report-row.ts';

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 };

export const span: Reader<number> = {
  read: (given) => {
    const [, count = '', unit = ''] = /^(\d{1,5})(s|min|h|d)$/.exec(given) ?? [];
    const unitMs = UNITS_MS[unit];
    return unitMs === undefined
      ? { fault: 'must be a time span such as 30s, 15min, 2h or 3d.' }
      : { value: Number(count) * unitMs };
  },
};

/** Every currency of the service has two minor digits, as USD has. */
const amount: Reader<bigint> = {
  read: (given) => {
    const value = parseMoney(given, 'USD');
    return value === undefined ? { fault: 'must be an amount such as 1000.00.' } : { value };
  },
};

export const olderThan = optional('--older-than <span>', 'nothing newer than this, such as 15min, 2h or 3d', span);
export const organization = optional('--org <id>', 'of this organization only', text);
const LIMIT_MAX = 1_000;
const MORE = `More exist. --limit shows up to ${LIMIT_MAX}; the filters narrow the list.`;
const COMMON = {
  olderThan,
  limit: withDefault('--limit <count>', 'at most this many', wholeNumber(1, LIMIT_MAX), '50'),
};

type Common = { readonly olderThan: number | undefined; readonly limit: number };
/** The filter that all lists share. One more than is shown tells whether more exist. */
const cutOf = ({ now }: OpsDeps, { olderThan: ageMs, limit }: Common) => ({
  limit: limit + 1,
  before: ageMs === undefined ? undefined : new Date(now().getTime() - ageMs),
});

export const listCommands: OpsCommand = group('list', 'Lists what there is, by filters; the newest first.', [
  timedCommand({
    name: 'settlements',
    description:
      'Lists settlements, open ones unless a status, organization, recipient, reference or --refund-due is given. The ' +
      'latest changes come first; of an organization what was accepted last, with --refund-due what was due first.',
    takes: {
      status: repeatable('--status <status>', 'this status; may be repeated', oneOf(SETTLEMENT_STATUSES)),
      corridor: optional('--corridor <corridor>', 'this corridor only', oneOf(CORRIDOR_IDS)),
      minAmount: optional('--min-amount <amount>', "at least this, in each settlement's source currency", amount),
      recipientId: optional('--recipient <id>', 'to this recipient only', text),
      reference: optional('--reference <reference>', "with this reference of the partner's only", text),
      isRefundDue: flag('--refund-due', 'only with money that is due back to the payer'),
      orgId: organization,
      ...COMMON,
    },
    run: async (deps: OpsDeps, { status, minAmount, limit, olderThan: ageMs, ...only }) => {
      const common = { limit, olderThan: ageMs };
      const { isRefundDue, recipientId, reference, orgId } = only;
      const isNamed = isRefundDue || recipientId !== undefined || reference !== undefined;
      const isWide = status.length === 0 && (isNamed || orgId !== undefined);
      const read = (tx: Tx) =>
        listSettlementsBy(tx, {
          ...cutOf(deps, common),
          ...only,
          statuses: isWide ? undefined : status.length > 0 ? status : OPEN_STATUSES,
          amountMinorMin: minAmount,
          order: isRefundDue ? 'refund_due' : isWide && !isNamed ? 'accepted' : 'changed',
        });
      return printItems(deps, common, read, (row) => ({
        settlement: row.settlementId,
        status: row.status,
        amount: money(row.amountMinor, row.sourceCurrency),
        corridor: row.corridor,
        payment_method: row.paymentMethod,
        reference: row.reference,
        recipient: row.recipientId,
        refund_due: refundDueMinor(row) > 0n ? money(refundDueMinor(row), row.sourceCurrency) : null,
        refund_due_since: row.refundDueSince,
        created_at: row.createdAt,
        changed_at: row.updatedAt,
        until: row.expiresAt,
        organization: row.orgId,
      }));
    },
  }),
  timedCommand({
    name: 'deliveries',
    description: 'Lists webhook deliveries, pending and exhausted ones unless a status is given.',
    takes: {
      status: repeatable('--status <status>', 'this status; may be repeated', oneOf(DELIVERY_STATUSES)),
      webhookId: optional('--webhook <id>', 'to this subscription only', text),
      orgId: organization,
      ...COMMON,
    },
    run: async (deps: OpsDeps, { status, webhookId, orgId, ...common }) => {
      const statuses = status.length > 0 ? status : (['pending', 'exhausted'] as const);
      const read = (tx: Tx) => listDeliveriesBy(tx, { ...cutOf(deps, common), statuses, webhookId, orgId });
      return printItems(deps, common, read, (row) => ({
        delivery: row.deliveryId,
        status: row.status,
        event_type: row.eventType,
        created_at: row.createdAt,
        next_attempt_at: row.nextAttemptAt,
        webhook: row.webhookId,
        organization: row.orgId,
      }));
    },
  }),
  timedCommand({
    name: 'subscriptions',
    description: 'Lists webhook subscriptions.',
    takes: {
      state: optional('--status <status>', 'this status', oneOf(SUBSCRIPTION_STATES)),
      orgId: organization,
      ...COMMON,
    },
    run: async (deps: OpsDeps, { state, orgId, ...common }) => {
      const read = (tx: Tx) => listSubscriptionsBy(tx, { ...cutOf(deps, common), state, orgId });
      return printItems(deps, common, read, (row) => ({
        ...webhookRow(row),
        created_at: row.createdAt,
        organization: row.orgId,
      }));
    },
  }),
  timedCommand({
    name: 'evidence',
    description: 'Lists what providers said about the money of settlements.',
    takes: {
      kind: optional('--kind <kind>', 'this kind only', oneOf(EVIDENCE_KINDS)),
      pending: flag('--pending', 'only what no workflow has decided by yet'),
      orgId: organization,
      ...COMMON,
    },
    run: async (deps: OpsDeps, { kind, pending, orgId, ...common }) => {
      const isPending = pending ? true : undefined;
      const read = (tx: Tx) => listEvidenceBy(tx, { ...cutOf(deps, common), kind, isPending, orgId });
      return printItems(deps, common, read, (row) => ({
        evidence: row.evidenceId,
        kind: row.kind,
        amount: money(row.amountMinor, row.currency),
        decided: !row.pending,
        received_at: row.receivedAt,
        settlement: row.settlementId,
        provider: row.provider,
        provider_event: row.eventId,
        organization: row.orgId,
      }));
    },
  }),
  timedCommand({
    name: 'audit',
    description: 'Lists what operators did, and why.',
    takes: {
      operator: optional('--operator <name>', 'of this operator only', operatorReader),
      action: optional('--action <action>', 'this action only', oneOf(AUDIT_ACTIONS)),
      objectId: optional('--object <id>', 'about this object only', text),
      orgId: organization,
      ...COMMON,
    },
    run: async (deps: OpsDeps, { operator, action, objectId, orgId, ...common }) => {
      const read = (tx: Tx) => listAuditBy(tx, { ...cutOf(deps, common), operator, action, objectId, orgId });
      return printItems(deps, common, read, (row) => ({
        at: row.at,
        action: row.action,
        operator: row.operator,
        object: row.objectId,
        note: row.note,
        organization: row.orgId,
      }));
    },
  }),
  timedCommand({
    name: 'orgs',
    description: 'Lists partner organizations.',
    takes: {
      withoutKey: flag('--without-key', 'only those without an active key of scope full'),
      suspended: flag('--suspended', 'only those that an operator has suspended'),
      ...COMMON,
    },
    run: async (deps: OpsDeps, { withoutKey, suspended, ...common }) => {
      const filter = { ...cutOf(deps, common), isWithoutKey: withoutKey, isSuspended: suspended, now: deps.now() };
      const read = (tx: Tx) => listPartnersBy(tx, filter);
      return printItems(deps, common, read, (row) => ({
        organization: row.orgId,
        name: row.name,
        country: row.country,
        environment: row.environment,
        contact: maskEmail(row.contactEmail),
        active_full_keys: row.fullKeys,
        created_at: row.createdAt,
        suspended_at: row.suspendedAt,
      }));
    },
  }),
  timedCommand({
    name: 'keys',
    description: 'Lists API keys. A raw key is stored nowhere.',
    takes: {
      status: optional('--status <status>', 'this status', oneOf(API_KEY_STATUSES)),
      scope: optional('--scope <scope>', 'this scope', oneOf(SCOPES)),
      isExpiring: flag(
        '--expiring',
        'only the last keys of scope full of partners that expire soon; the soonest first',
      ),
      orgId: organization,
      ...COMMON,
    },
    run: async (deps: OpsDeps, { status, scope, isExpiring, orgId, ...common }) => {
      const now = deps.now();
      const read = (tx: Tx) => listKeysBy(tx, { ...cutOf(deps, common), status, scope, isExpiring, orgId, now });
      return printItems(deps, common, read, (row) => ({ ...keyRow(row, now), organization: row.orgId }));
    },
  }),
]);

/** A filter that the index of a list's order does not have may need a read of the whole table. */
async function printItems<Found>(
  { db, print, printData }: OpsDeps,
  { limit }: Common,
  read: (tx: Tx) => Promise<readonly Found[]>,
  itemOf: (row: Found) => Row,
): Promise<ExitCode> {
  const found = await readLongSnapshot(db, read);
  const items = found.slice(0, limit).map(itemOf);
  const more = found.length > limit;
  for (const item of items) print(lineOf(item));
  if (items.length === 0) print('none');
  if (more) print(MORE);
  printData({ items, more });
  return EXIT.done;
}
