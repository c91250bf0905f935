/**
 * The rows of a settlement, as its decisions say that they are, and as PostgreSQL has them. Both are plain JSON, with
 * the model's ids of evidence.
 */
import { getRecipient } from '../../db/queries/recipient.ts';
import { getSettlementWithHistory } from '../../db/queries/settlement-history.ts';
import { EVENT_SCHEMA_VERSION } from '../../domain/event.ts';
import type { OutboxMessage } from '../../domain/outbox.ts';
import { settlementDetail, settlementEventData } from '../../domain/resource/settlement.ts';
import { acceptedEvent, type ChangeEvent, isEmpty, type SettlementChange } from '../../domain/settlement/change.ts';
import type { SettlementException } from '../../domain/settlement/evidence.ts';
import type { Settlement, SettlementTransition } from '../../domain/settlement/state.ts';
import type { TestApi } from '../support/api.ts';
import type { Situation } from './situation.ts';

/** What was written so far, beside the rows that change, which a situation has. */
export type Ledger = {
  readonly transitions: readonly SettlementTransition[];
  readonly postings: readonly (SettlementChange['postings'][number] & { readonly at: Date })[];
  readonly exceptions: readonly SettlementException[];
  readonly events: readonly ChangeEvent[];
  readonly messages: readonly OutboxMessage[];
  /** When each piece of evidence was recorded, in the order in which they came. */
  readonly receivedAt: readonly Date[];
};

/** What an acceptance writes. */
export const acceptedLedger = (accepted: Settlement, message: OutboxMessage): Ledger => ({
  transitions: [
    { sequence: 1, from: null, to: accepted.status, at: accepted.createdAt, reason: null, evidenceId: null },
  ],
  postings: [],
  exceptions: [],
  events: [acceptedEvent(accepted)],
  messages: [message],
  receivedAt: [],
});

/** An empty change writes nothing. */
export const ledgerAfter = (ledger: Ledger, change: SettlementChange): Ledger =>
  isEmpty(change)
    ? ledger
    : {
        transitions: [...ledger.transitions, ...change.transitions],
        postings: [...ledger.postings, ...change.postings.map((posting) => ({ ...posting, at: change.at }))],
        exceptions: [...ledger.exceptions, ...change.exceptions],
        events: [...ledger.events, ...change.events],
        messages: [...ledger.messages, ...change.messages],
        receivedAt: change.evidence ? [...ledger.receivedAt, change.at] : ledger.receivedAt,
      };

/** How a certificate's id is shown. */
const CERTIFIED = 'CERT';

/** The rows that the decisions say. */
export function expectedRows({ settlement, evidence, identity }: Situation, ledger: Ledger) {
  const { name, isActive, verificationStatus, updatedAt } = identity.recipient;
  const at = ({ at: dated }: ChangeEvent) => dated.toISOString();
  return plain({
    settlement: certified(settlement),
    recipient: { name, isActive, verificationStatus, updatedAt },
    evidence: evidence.map(({ evidenceId, provider, eventId, kind, amountMinor, currency, ...rest }, index) => ({
      ...{ evidenceId, provider, eventId, kind, amountMinor, currency },
      ...{ failure: rest.failure, pending: rest.pending, reversedMinor: rest.reversedMinor },
      receivedAt: ledger.receivedAt[index],
    })),
    transitions: ledger.transitions,
    postings: ledger.postings,
    exceptions: ledger.exceptions,
    events: ledger.events.map((event) => ({
      ...{ type: event.type, sequence: event.sequence, at: at(event) },
      body: {
        ...{ type: event.type, timestamp: at(event), schema_version: EVENT_SCHEMA_VERSION, sequence: event.sequence },
        data: settlementEventData({ ...event, settlement: certified(event.settlement) }),
      },
    })),
    messages: ledger.messages,
  });
}

/** The model issues no certificates. */
const certified = (settlement: Settlement): Settlement => ({
  ...settlement,
  certificateId: settlement.status === 'settled' ? CERTIFIED : null,
});

const moment = (column: string, name: string): string =>
  `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS "${name}"`;
const listOf = (rows: string): string => `(SELECT coalesce(json_agg(row), '[]') FROM (${rows}) row)`;

/** The parts of the rows that no read of the service shows. */
const HIDDEN = {
  name: 'conformance',
  text: `SELECT ${listOf(`SELECT evidence_id AS "evidenceId", provider, event_id AS "eventId", kind,
      amount_minor::text AS "amountMinor", currency, failure, pending, reversed_minor::text AS "reversedMinor",
      ${moment('received_at', 'receivedAt')} FROM evidence WHERE settlement_id = $1 ORDER BY position`)} AS evidence,
    ${listOf(`SELECT account, currency, amount_minor::text AS "amountMinor", step, line, ${moment('at', 'at')}
      FROM postings WHERE settlement_id = $1`)} AS postings,
    ${listOf(`SELECT type, sequence, ${moment('created_at', 'at')}, convert_from(body, 'UTF8')::jsonb - 'id' AS body
      FROM events WHERE object_id = $1 ORDER BY sequence`)} AS events,
    ${listOf(`SELECT kind, object_id AS "objectId", signal, context, request_id AS "requestId"
      FROM outbox WHERE object_id = $1 ORDER BY outbox_id`)} AS messages`,
};

type HiddenRows = {
  readonly evidence: readonly { readonly evidenceId: string }[];
  readonly [list: string]: readonly unknown[];
};

/** The rows that PostgreSQL has. @param known the model's evidence, which has the same order */
export async function readRows({ connection, deps }: TestApi, { settlement, evidence: known }: Situation) {
  const { orgId, settlementId, recipientId } = settlement;
  const [{ rows }, recipient, { transitions, exceptions, payee: _payee, ...row }] = await Promise.all([
    connection.pool.query<HiddenRows>({ ...HIDDEN, values: [settlementId] }),
    getRecipient(deps, orgId, recipientId),
    getSettlementWithHistory(deps, orgId, settlementId),
  ]);
  const { name, isActive, verificationStatus, updatedAt } = recipient;
  const stored = {
    settlement: row,
    recipient: { name: name?.split(' ').at(-1), isActive, verificationStatus, updatedAt },
    transitions,
    exceptions,
    ...rows[0],
  };
  const ids = (rows[0]?.evidence ?? []).map(({ evidenceId }, index) => [evidenceId, known[index]?.evidenceId] as const);
  const named = new RegExp(`(?<!"settlement):${settlementId}"`, 'g');
  return plain(stored, (text) =>
    ids.reduce(
      (renamed, [stored, id]) => renamed.replaceAll(stored, id ?? 'not expected'),
      // The model has one settlement, so its provider events are not named by it.
      text.replaceAll(named, '"').replaceAll(row.certificateId ?? CERTIFIED, CERTIFIED),
    ),
  );
}

/**
 * The data of the settlement's latest event, and what a read answers now; both without what the other does not show.
 */
export async function readLatest({ connection, deps }: TestApi, { orgId, settlementId }: Settlement) {
  const { rows } = await connection.pool.query<{ body: Buffer }>(
    'SELECT body FROM events WHERE object_id = $1 ORDER BY sequence DESC LIMIT 1',
    [settlementId],
  );
  const { exception: _exception, ...event } = JSON.parse(String(rows[0]?.body)).data;
  const read = await getSettlementWithHistory(deps, orgId, settlementId);
  const { timeline: _timeline, payee: _payee, ...shown } = settlementDetail(read);
  return { event, shown };
}

type Rows = { readonly postings: readonly { readonly step: string; readonly line: number }[] };

/** As JSON. The order of postings is that of their keys. */
function plain<Stored extends object>(rows: Stored, renamed: (text: string) => string = (text) => text) {
  const text = JSON.stringify(rows, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
  const { postings, ...rest } = JSON.parse(renamed(text)) as Rows;
  const keyOf = ({ step, line }: Rows['postings'][number]): string => `${step} ${line}`;
  return { ...rest, postings: postings.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)) };
}
