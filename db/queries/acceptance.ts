/**
 * The two statements of an acceptance (contract §6): what it depends on is read by one, and everything that it writes
 * is written by the other. Both are written as SQL, because every accepted settlement runs them.
 */
import type { CorridorId } from '../../domain/corridor.ts';
import type { GateEvidence } from '../../domain/gate.ts';
import type { OutboxMessage } from '../../domain/outbox.ts';
import type { EnvironmentName } from '../../domain/runtime.ts';
import type { Settlement } from '../../domain/settlement/state.ts';
import type { Aggregated } from '../aggregated.ts';
import type { Queryable } from '../client.ts';
import { aliasedColumns, columnNames, columnParameters, columnsOf, columnValues } from '../column-list.ts';
import { dataKeySql } from '../data-key.ts';
import { idempotencyKeys } from '../schema/idempotency-key.ts';
import { outbox } from '../schema/outbox.ts';
import { recipients } from '../schema/recipient.ts';
import { settlements } from '../schema/settlement.ts';
import { type Parameter, statement } from '../statement.ts';
import { currentTraceparent } from '../traceparent.ts';
import { eventText, eventValues, type NumberedEvent } from './event.ts';
import { gateEvidenceSql } from './gate.ts';
import type { BoundKey, FoundKey, KeyedRequest } from './idempotency-key.ts';
import type { RecipientRow } from './recipient.ts';

const KEY = columnsOf(idempotencyKeys);
const BOUND_KEY = aliasedColumns<BoundKey>(KEY, 'k');
const RECIPIENT = aliasedColumns<RecipientRow>(columnsOf(recipients), 'r');

/** What an acceptance depends on, as of one moment. */
export type AcceptanceFacts = {
  /** Undefined while the key is free. */
  readonly bound: FoundKey | undefined;
  /** Undefined where the organization has no such recipient. */
  readonly recipient: RecipientRow | undefined;
  readonly gateEvidence: readonly Aggregated<GateEvidence>[];
};

type FactsRow = {
  readonly gates: readonly Aggregated<GateEvidence>[];
  readonly key_data_key: string | null;
} & Readonly<Record<string, unknown>>;

const factsStatement = statement<readonly string[], FactsRow>(
  'read_acceptance_facts',
  `SELECT ${BOUND_KEY.names}, ${RECIPIENT.names}, ${gateEvidenceSql('$4', '$5')} AS gates,
     ${dataKeySql('k.recipient_id')} AS key_data_key
   FROM (SELECT) AS one
   LEFT JOIN idempotency_keys k ON k.org_id = $1 AND k.key = $2
   LEFT JOIN recipients r ON r.org_id = $1 AND r.recipient_id = $3`,
);

/** Reads whether the key is bound, the recipient, and the evidence of the corridor's gates; one statement. */
export async function getAcceptanceFacts(
  db: Queryable,
  {
    orgId,
    idempotencyKey,
    recipientId,
  }: Pick<KeyedRequest, 'orgId' | 'idempotencyKey'> & Pick<Settlement, 'recipientId'>,
  { environment, corridor }: { readonly environment: EnvironmentName; readonly corridor: CorridorId },
): Promise<AcceptanceFacts> {
  const [row] = await factsStatement(db, orgId, idempotencyKey, recipientId, environment, corridor);
  if (!row) throw new Error('the facts of an acceptance are always one row');
  return {
    bound: row['k.key'] === null ? undefined : { ...BOUND_KEY.rowOf(row), dataKeySealed: row.key_data_key },
    recipient: row['r.recipient_id'] === null ? undefined : RECIPIENT.rowOf(row),
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

const acceptanceStatement = statement<readonly Parameter[], { readonly key: string }>(
  'insert_acceptance',
  `WITH bound AS (
     INSERT INTO idempotency_keys (${columnNames(KEY)}) VALUES (${columnParameters(KEY, 0)})
     ON CONFLICT DO NOTHING RETURNING key
   ), accepted AS (
     INSERT INTO settlements (${columnNames(SETTLEMENT)})
     SELECT ${columnParameters(SETTLEMENT, SETTLEMENT_OFFSET)} FROM bound
     RETURNING settlement_id, version, status, created_at
   ), history AS (
     INSERT INTO settlement_transitions (settlement_id, sequence, to_status, at)
     SELECT settlement_id, version, status, created_at FROM accepted
   ), message AS (
     INSERT INTO outbox (${columnNames(MESSAGE)}) SELECT ${columnParameters(MESSAGE, MESSAGE_OFFSET)} FROM bound
   ), ${eventText('bound', EVENT_OFFSET)}
   SELECT key FROM bound`,
);

/**
 * Binds the key and, if it was free, writes the settlement, its first history row, its event with the deliveries, and
 * the outbox row that starts its workflow; one statement. A request with the same key that is being committed is waited
 * for.
 *
 * @returns false, and nothing is written, when the key was bound already
 */
export async function insertAcceptance(db: Queryable, acceptance: Acceptance): Promise<boolean> {
  const { key, settlement, paymentTokenSealed, event, message } = acceptance;
  const bound = await acceptanceStatement(
    db,
    ...columnValues(KEY, key),
    ...columnValues(SETTLEMENT, { ...settlement, paymentTokenSealed }),
    ...columnValues(MESSAGE, { ...message, traceparent: currentTraceparent() }),
    ...eventValues(event),
  );
  return bound.length === 1;
}
