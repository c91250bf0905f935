/**
 * Settlements in a wanted state, without Temporal. The product's own code moves them, so state, history, evidence,
 * journal and events are as a real run leaves them.
 *
 * `createSteps`: accepted by the API and moved by the workflow's activities.
 * `openSettlement`: accepted by the API and moved to any state, with no evidence.
 * `insertSettledSettlement`, `insertCertifiedSettlement`: ended, for any organization, in any runtime;
 * `insertPayingOutSettlement`: before its end.
 */
import { createHash } from 'node:crypto';
import { type Certifier, certified, createCertifier } from '../../activities/certificate.ts';
import { payoutAnswer } from '../../activities/providers/payout-rail.ts';
import { sandboxActivities } from '../../activities/sandbox.ts';
import { settlementActivities } from '../../activities/settlement.ts';
import type { Database, Tx } from '../../db/client.ts';
import { recordEvidence } from '../../db/commands/evidence.ts';
import { type DataKey, type KeyOwner, openDataKey } from '../../db/data-key.ts';
import { newId, settlementIdOf } from '../../db/id.ts';
import { sealPayee } from '../../db/payee.ts';
import { type Stamp, writeEvent } from '../../db/queries/event.ts';
import { insertRecipient } from '../../db/queries/recipient.ts';
import { findSettlement, lockSettlement } from '../../db/queries/settlement.ts';
import { writeChange } from '../../db/queries/settlement-change.ts';
import { settlements, settlementTransitions } from '../../db/schema/index.ts';
import { createSealer, type Sealer } from '../../db/seal.ts';
import { freezePayee } from '../../domain/payee.ts';
import { price } from '../../domain/pricing.ts';
import type { RecipientDraft } from '../../domain/recipient.ts';
import { settlementEventData } from '../../domain/resource/settlement.ts';
import type { EnvironmentName } from '../../domain/runtime.ts';
import type { PayoutEvent } from '../../domain/sandbox/event.ts';
import { acceptedEvent, changeOf, type Move, withDecided, withMove } from '../../domain/settlement/change.ts';
import type { NewEvidence } from '../../domain/settlement/evidence.ts';
import { acceptedSettlement, type Settlement, type SettlementStatus } from '../../domain/settlement/state.ts';
import { activityDeps } from './activity.ts';
import { type Caller, TEST_SECRETS, type TestApi } from './api.ts';
import { createRecipient, type Json, jsonOf, readSettlement, settle, settleBody } from './partner.ts';

export const BY_WIRE = { payment_method: 'wire', card_token: undefined } as const;
/** A card that the simulated processor says nothing about, so that the test sends the events. */
export const BY_MANUAL_CARD = { card_token: 'tok_manual' } as const;

/** Settlements of one partner, accepted by the API and moved by the workflow's activities, which the test calls. */
export function createSteps(api: TestApi, caller: Caller) {
  const deps = activityDeps(api);
  const activities = settlementActivities(deps);
  const step = (settlementId: string, nowMs = Date.now()) => ({ settlementId, orgId: caller.orgId, nowMs });
  const accept = (overrides?: Record<string, unknown>, recipient?: Record<string, unknown>) =>
    settle(api, caller, overrides, recipient);
  /** By the legacy route, which is funded internally. */
  const acceptInternal = async (recipient: Record<string, unknown> = {}): Promise<string> => {
    const recipientId = await createRecipient(api, caller, recipient);
    const { payment_method: _method, card_token: _token, ...body } = settleBody(recipientId);
    return jsonOf(await api.call(caller, 'POST', '/v1/caribbean/settle', body)).settlement_id;
  };
  const stored = async (settlementId: string): Promise<Settlement> => {
    const settlement = await findSettlement(api.connection.db, caller.orgId, settlementId);
    if (!settlement) throw new Error(`no settlement ${settlementId}`);
    return settlement;
  };
  return {
    activities,
    /** The argument of an activity. */
    step,
    accept,
    acceptInternal,
    /** The settlement as the database holds it. */
    stored,
    /** The settlement as the API shows it. */
    read: (settlementId: string): Promise<Json> => readSettlement(api, caller, settlementId),
    /** A settlement that waits for its money. */
    waiting: async (overrides?: Record<string, unknown>, recipient?: Record<string, unknown>): Promise<string> => {
      const id = await accept(overrides, recipient);
      await activities.admitSettlement(step(id));
      return id;
    },
    /** The rail answers about a payout, as a test helper makes it. */
    answerPayout: (settlementId: string, event: PayoutEvent): Promise<void> =>
      sandboxActivities(deps).sendSandboxEvent({
        settlementId,
        orgId: caller.orgId,
        commandId: newId(),
        event,
        amountMinor: '0',
      }),
    /** A settlement whose payout got no answer in three days. */
    inReview: async (): Promise<string> => {
      const id = await acceptInternal({ name: 'PAYOUT PENDING' });
      await activities.admitSettlement(step(id));
      await activities.sendPayout(step(id));
      const { expiresAt } = await stored(id);
      await activities.reviewSettlement(step(id, expiresAt?.getTime()));
      return id;
    },
  };
}

export type Steps = ReturnType<typeof createSteps>;

/** The states after `accepted` of a settlement whose payout has no known outcome. */
export const IN_REVIEW = ['awaiting_funds', 'funded', 'paying_out', 'needs_review'] as const;

/**
 * A settlement that no workflow runs for, for what operators see of it.
 *
 * @param path the states that it enters after `accepted`
 * @param at when it enters them
 */
export async function openSettlement(
  api: TestApi,
  caller: Caller,
  path: readonly SettlementStatus[] = [],
  at = new Date(),
): Promise<string> {
  const settlementId = await settle(api, caller);
  await enterStates(api, caller, settlementId, path, at);
  return settlementId;
}

/** Moves settlements to production, as if they had been accepted there: two environments may use one database. */
export const moveToProduction = (api: TestApi, ...settlementIds: readonly string[]) =>
  api.owner.pool.query(`UPDATE settlements SET environment = 'production' WHERE settlement_id = ANY ($1)`, [
    settlementIds,
  ]);

/** Moves a locked settlement, and nothing else. It is dated by `at`, which may be before its acceptance. */
export const moveSettlement = (
  tx: Tx,
  settlement: Settlement,
  { at, requestId = settlement.requestId, ...move }: Move & Pick<Stamp, 'at'> & Partial<Stamp>,
): Promise<Settlement> =>
  writeChange(tx, withMove({ ...changeOf({ settlement, exceptions: [] }, at), at }, move), requestId);

/** Moves a settlement through these states, with no evidence. */
export async function enterStates(
  api: TestApi,
  caller: Pick<Caller, 'orgId'>,
  settlementId: string,
  path: readonly SettlementStatus[],
  at = new Date(),
): Promise<void> {
  await api.connection.db.transaction(async (tx) => {
    let settlement = await lockSettlement(tx, caller.orgId, settlementId);
    for (const to of path) settlement = await moveSettlement(tx, settlement, { to, at, reason: 'test' });
  });
}

export type SettledOptions = {
  readonly amount?: string;
  readonly recipient?: Pick<RecipientDraft, 'name'>;
  readonly reference?: string;
  readonly environment?: EnvironmentName;
};

const STEP_MS = 1_000;

/** A settlement that reached `settled`, paid by one collection, a second after each step. It has no certificate. */
export const insertSettledSettlement = (
  db: Database,
  orgId: string,
  options: SettledOptions = {},
): Promise<Settlement> => insertUntil(db, orgId, 'settled', options);

/** As `insertSettledSettlement`, while its payout is under way. */
export const insertPayingOutSettlement = (db: Database, orgId: string): Promise<Settlement> =>
  insertUntil(db, orgId, 'paying_out', {});

/** As `insertSettledSettlement`, with its certificate, which the tests' key signs, and the event about it. */
export async function insertCertifiedSettlement(
  db: Database,
  orgId: string,
  { certifier = createCertifier([TEST_SECRETS.signing]), ...options }: SettledOptions & { certifier?: Certifier } = {},
): Promise<{ settlement: Settlement; certId: string }> {
  const settlement = await insertUntil(db, orgId, 'settled', options, certifier);
  return { settlement, certId: settlement.certificateId ?? '' };
}

async function insertUntil(
  db: Database,
  orgId: string,
  last: 'paying_out' | 'settled',
  options: SettledOptions,
  certifier?: Certifier,
): Promise<Settlement> {
  return await db.transaction(async (tx) => {
    let settlement = await insertAccepted(tx, orgId, options);
    const enter = async (to: SettlementStatus, evidenceId?: string): Promise<void> => {
      const at = new Date(settlement.updatedAt.getTime() + STEP_MS);
      const begun = changeOf({ settlement, exceptions: [] }, at);
      const move = withMove(begun, { to, reason: 'test', evidenceId });
      const decided = to === 'settled' && evidenceId ? withDecided(move, evidenceId) : move;
      const change = certifier ? await certified(tx, certifier, decided) : decided;
      settlement = await writeChange(tx, change, settlement.requestId);
    };
    const receive = async (evidence: NewEvidence): Promise<string> => {
      const stamp = { at: settlement.updatedAt, requestId: settlement.requestId };
      settlement = await recordEvidence(tx, { settlement, exceptions: [] }, evidence, stamp);
      return evidence.evidenceId;
    };
    await enter('awaiting_funds');
    await enter('funded', await receive(collectionOf(settlement)));
    await enter('paying_out');
    if (last === 'settled')
      await enter('settled', await receive(payoutAnswer(settlement.settlementId, 'payout_confirmed')));
    return settlement;
  });
}

async function insertAccepted(tx: Tx, orgId: string, options: SettledOptions): Promise<Settlement> {
  const priced = price({ corridor: 'US-JM', amount: options.amount ?? '250.00', paymentMethod: 'card' });
  if ('faults' in priced) throw new Error(`no valid settlement: ${JSON.stringify(priced.faults)}`);
  const createdAt = new Date('2026-11-21T08:00:00.000Z');
  const draft: RecipientDraft = {
    kind: 'vendor',
    entityType: 'individual',
    name: 'Test Recipient',
    country: 'JM',
    email: null,
    phone: null,
    bankDetails: { bank_name: 'Test Bank', account_number: '123456789', currency: 'JMD' },
    mobileDetails: null,
    metadata: {},
    ...options.recipient,
  };
  const sealer = createSealer([TEST_SECRETS.encryption]);
  const recipient = await insertRecipient(tx, orgId, draft, { sealer, at: createdAt });
  const newSettlementId = settlementIdOf(orgId, newId());
  const payee = freezePayee(recipient, draft, priced.pricing.payoutRail);
  const settlement = acceptedSettlement({
    ...priced.pricing,
    settlementId: newSettlementId,
    orgId,
    origin: 'v2',
    recipientId: recipient.recipientId,
    ...sealPayee(dataKeyOf(sealer, recipient), newSettlementId, payee),
    purpose: null,
    reference: options.reference ?? null,
    metadata: {},
    environment: options.environment ?? 'local sandbox',
    requestId: 'test-request',
    createdAt,
  });
  await tx.insert(settlements).values(settlement);
  const { settlementId, version: sequence, status: to, createdAt: at } = settlement;
  await tx.insert(settlementTransitions).values({ settlementId, sequence, to, at });
  const event = acceptedEvent(settlement);
  const { requestId } = settlement;
  const about = { orgId, objectType: 'settlement', objectId: settlementId, requestId } as const;
  await writeEvent(tx, { ...about, type: event.type, at: event.at, data: settlementEventData(event) }, 1);
  return settlement;
}

function collectionOf({ settlementId, amountMinor, sourceCurrency }: Settlement): NewEvidence {
  const eventId = `collection:${settlementId}`;
  return {
    evidenceId: newId(),
    provider: 'cardproc',
    eventId,
    kind: 'collection_succeeded',
    amountMinor,
    currency: sourceCurrency,
    failure: null,
    sha256: createHash('sha256').update(eventId).digest('hex'),
  };
}

/** The data key of a recipient that is not erased. */
export function dataKeyOf(sealer: Sealer, recipient: KeyOwner): DataKey {
  const dataKey = openDataKey(sealer, recipient);
  if (!dataKey) throw new Error(`recipient ${recipient.recipientId} is erased`);
  return dataKey;
}
