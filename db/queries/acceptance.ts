/**
 * The two statements of an acceptance (contract §6): what it depends on is read by one, and everything that it writes
 * is written by the other. Both are written as SQL, because every accepted settlement runs them. Acceptances of one
 * organization that arrive together share them (`group.ts`), and then also the commit.
 */
import type { CorridorId } from '../../domain/corridor.ts';
import type { GateEvidence } from '../../domain/gate.ts';
import type { OutboxMessage } from '../../domain/outbox.ts';
import type { EnvironmentName } from '../../domain/runtime.ts';
import type { Settlement } from '../../domain/settlement/state.ts';
import type { Aggregated } from '../aggregated.ts';
import { type Database, isRefused } from '../client.ts';
import {
  type ColumnList,
  columnArrays,
  columnNames,
  columnRow,
  columnsOf,
  columnValues,
  jsonColumns,
} from '../column-list.ts';
import { dataKeySql } from '../data-key.ts';
import { inGroups } from '../group.ts';
import { idempotencyKeys } from '../schema/idempotency-key.ts';
import { outbox } from '../schema/outbox.ts';
import { recipients } from '../schema/recipient.ts';
import { settlements } from '../schema/settlement.ts';
import { type Scalar, statement } from '../statement.ts';
import { currentTraceparent } from '../traceparent.ts';
import { EVENT, fanOutText, type NumberedEvent } from './event.ts';
import { gateEvidenceSql } from './gate.ts';
import type { BoundKey, FoundKey, KeyedRequest } from './idempotency-key.ts';
import type { RecipientRow } from './recipient.ts';

const KEY = columnsOf(idempotencyKeys);
const BOUND_KEY = jsonColumns<BoundKey>(KEY, 'k');
const RECIPIENT = jsonColumns<RecipientRow>(columnsOf(recipients), 'r');

/** What an acceptance depends on, as of one moment. */
export type AcceptanceFacts = {
  /** Undefined while the key is free. */
  readonly bound: FoundKey | undefined;
  /** Undefined where the organization has no such recipient. */
  readonly recipient: RecipientRow | undefined;
  readonly gateEvidence: readonly Aggregated<GateEvidence>[];
};

type FactsRow = {
  readonly bound: readonly unknown[] | null;
  readonly recipient: readonly unknown[] | null;
  readonly gates: readonly Aggregated<GateEvidence>[];
  readonly key_data_key: string | null;
};

/** An organization, a key, a recipient, an environment and a corridor. */
type FactsParameters = readonly [string, string, string, EnvironmentName, CorridorId];

/** Large enough for the gain, and short enough for those that wait meanwhile. */
const TOGETHER_MAX = 16;
/** Then each alone may be written or refused. */
const TOGETHER = { sizeMax: TOGETHER_MAX, splitsOn: isRefused };

/** @param asked a row for each acceptance */
const factsText = (asked: string): string =>
  `SELECT CASE WHEN k.key IS NOT NULL THEN ${BOUND_KEY.text} END AS bound,
     CASE WHEN r.recipient_id IS NOT NULL THEN ${RECIPIENT.text} END AS recipient,
     ${gateEvidenceSql('asked.environment', 'asked.corridor')} AS gates,
     ${dataKeySql('k.recipient_id')} AS key_data_key
   FROM ${asked} AS asked (org_id, key, recipient_id, environment, corridor, place)
   LEFT JOIN idempotency_keys k ON k.org_id = asked.org_id AND k.key = asked.key
   LEFT JOIN recipients r ON r.org_id = asked.org_id AND r.recipient_id = asked.recipient_id
   ORDER BY place`;

const factsStatement = statement<FactsParameters, FactsRow>(
  'read_acceptance_facts',
  factsText('(VALUES ($1, $2, $3, $4, $5, 1))'),
);
const factsOfManyStatement = statement<readonly string[][], FactsRow>(
  'read_acceptances_facts',
  factsText('unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) WITH ORDINALITY'),
);

const readFacts = inGroups<FactsParameters, FactsRow>(async (db, asked) => {
  const [first, ...others] = asked;
  if (others.length === 0) return await factsStatement(db, ...first);
  return await factsOfManyStatement(db, ...first.map((_, place) => asked.map((each) => each[place] ?? '')));
}, TOGETHER);

/** Reads whether the key is bound, the recipient, and the evidence of the corridor's gates. */
export async function getAcceptanceFacts(
  db: Database,
  {
    orgId,
    idempotencyKey,
    recipientId,
  }: Pick<KeyedRequest, 'orgId' | 'idempotencyKey'> & Pick<Settlement, 'recipientId'>,
  { environment, corridor }: { readonly environment: EnvironmentName; readonly corridor: CorridorId },
): Promise<AcceptanceFacts> {
  const row = await readFacts(db, orgId, [orgId, idempotencyKey, recipientId, environment, corridor]);
  return {
    bound: row.bound === null ? undefined : { ...BOUND_KEY.rowOf(row.bound), dataKeySealed: row.key_data_key },
    recipient: row.recipient === null ? undefined : RECIPIENT.rowOf(row.recipient),
    gateEvidence: row.gates,
  };
}

/** Everything that an acceptance writes. */
export type Acceptance = {
  readonly key: BoundKey;
  readonly settlement: Settlement;
  readonly paymentTokenSealed: string | null;
  readonly event: NumberedEvent;
  readonly message: OutboxMessage<'settlement'>;
};

const SETTLEMENT = columnsOf(settlements);
const MESSAGE = columnsOf(outbox, ['kind', 'objectId', 'signal', 'context', 'requestId', 'traceparent']);

const SETTLEMENT_OFFSET = KEY.length;
const MESSAGE_OFFSET = SETTLEMENT_OFFSET + SETTLEMENT.length;
const EVENT_OFFSET = MESSAGE_OFFSET + MESSAGE.length;

/** Each row of the other tables belongs to a key that was free. */
const OF_BOUND = 'IN (SELECT resource_id FROM bound)';

/** @param given the rows of a table, as their parameters from this offset on */
function acceptanceText(given: (columns: ColumnList, offset: number) => string): string {
  const rows = (columns: ColumnList, offset: number): string =>
    `(${columnNames(columns)}) SELECT ${columnNames(columns)} FROM ${given(columns, offset)}`;
  return `WITH bound AS (
     INSERT INTO idempotency_keys ${rows(KEY, 0)} ON CONFLICT DO NOTHING RETURNING key, resource_id
   ), accepted AS (
     INSERT INTO settlements ${rows(SETTLEMENT, SETTLEMENT_OFFSET)} WHERE settlement_id ${OF_BOUND}
     RETURNING settlement_id, version, status, created_at
   ), history AS (
     INSERT INTO settlement_transitions (settlement_id, sequence, to_status, at)
     SELECT settlement_id, version, status, created_at FROM accepted
   ), message AS (
     INSERT INTO outbox ${rows(MESSAGE, MESSAGE_OFFSET)} WHERE object_id ${OF_BOUND}
     RETURNING object_id, request_id, traceparent
   ), written AS (
     INSERT INTO events ${rows(EVENT, EVENT_OFFSET)} WHERE object_id ${OF_BOUND}
     RETURNING event_id, org_id, type, object_type, object_id
   ), event AS (
     SELECT event_id, org_id, type, object_type, object_id, request_id, traceparent
     FROM written JOIN message USING (object_id)
   ), ${fanOutText('event')}
   SELECT key FROM bound`;
}

type BoundRow = { readonly key: string };
const acceptanceStatement = statement<readonly Scalar[], BoundRow>('insert_acceptance', acceptanceText(columnRow));
/** Of one acceptance it would cost half as much again. */
const acceptancesStatement = statement<readonly Scalar[][], BoundRow>(
  'insert_acceptances',
  acceptanceText(columnArrays),
);

type Write = { readonly key: string; readonly values: readonly Scalar[] };

/**
 * Binds the keys in their order, so that two processes that bind the same ones never both wait, which would be a
 * deadlock. Of several with one key one is written.
 */
async function writeTogether(db: Database, writes: readonly Write[]): Promise<readonly boolean[]> {
  const byKey = new Map(writes.map((write) => [write.key, write]));
  const sorted = [...byKey.values()].sort((one, other) => (one.key < other.key ? -1 : 1));
  const [first, ...others] = sorted;
  if (!first) return [];
  const arrays = () => first.values.map((_, place) => sorted.map(({ values }) => values[place] ?? null));
  const bound =
    others.length === 0 ? await acceptanceStatement(db, ...first.values) : await acceptancesStatement(db, ...arrays());
  const keys = new Set(bound.map(({ key }) => key));
  return writes.map((write) => keys.has(write.key) && byKey.get(write.key) === write);
}

const write = inGroups(writeTogether, TOGETHER);

/**
 * Binds the key and, if it was free, writes the settlement, its first history row, its event with the deliveries, and
 * the outbox row that starts its workflow; one statement. A request with the same key that is being committed is waited
 * for.
 *
 * @returns false, and nothing is written, when the key was bound already
 */
export async function insertAcceptance(db: Database, acceptance: Acceptance): Promise<boolean> {
  const { key, settlement, paymentTokenSealed, event, message } = acceptance;
  const values = [
    ...columnValues(KEY, key),
    ...columnValues(SETTLEMENT, { ...settlement, paymentTokenSealed }),
    ...columnValues(MESSAGE, { ...message, traceparent: currentTraceparent() }),
    ...columnValues(EVENT, { ...event, createdAt: event.at }),
  ];
  return await write(db, key.orgId, { key: key.key, values });
}
