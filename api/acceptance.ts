/**
 * Accepting a settlement (contract §6): the one place where a command becomes a durable record, for every route
 * that makes settlements. The key, the record, its event and the request to start its workflow are one transaction;
 * the answer is made once and is the same bytes for ever.
 */

import type { Tx } from '../db/client.ts';
import { settlementIdOf } from '../db/id.ts';
import { type BoundKey, bindIdempotencyKey, type CommandFingerprint, findIdempotencyKey, mismatchOf } from '../db/queries/idempotency-key.ts';
import { enqueue } from '../db/queries/outbox.ts';
import { getRecipientForShare } from '../db/queries/recipient.ts';
import { insertSettlement } from '../db/queries/settlement.ts';
import { CORRIDORS } from '../domain/corridor.ts';
import { DomainError, ValidationError } from '../domain/error.ts';
import { type Pricing, type PricingInput, price } from '../domain/estimate.ts';
import { settlementMessage } from '../domain/outbox.ts';
import { payoutFaults, type Recipient } from '../domain/recipient.ts';
import { environmentName } from '../domain/runtime.ts';
import { acceptedSettlement, type Origin, type Purpose, type Settlement } from '../domain/settlement.ts';
import type { ApiDeps } from './deps.ts';

export type SettlementCommand = PricingInput & {
  readonly orgId: string;
  readonly idempotencyKey: string;
  readonly fingerprint: CommandFingerprint;
  readonly requestId: string;
  readonly origin: Origin;
  readonly recipientId: string;
  readonly purpose: Purpose | null;
  readonly reference: string | null;
  readonly metadata: Record<string, string>;
  /** The payer's card or account token; sealed before it is stored. */
  readonly paymentToken: string | null;
};

/** How the accepting route answers; kept with the key. */
export type AcceptanceAnswer = { readonly status: number; present(settlement: Settlement): Readonly<Record<string, unknown>> };

export type Accepted = { readonly settlementId: string; readonly status: number; readonly body: Buffer; readonly replayed: boolean };

/**
 * Accepts a settlement, or answers as the key's first use was answered.
 *
 * @throws DomainError `idempotency_key_reused`, `not_found`, `state_conflict`; ValidationError. None binds the key.
 */
export async function acceptSettlement(deps: ApiDeps, command: SettlementCommand, answer: AcceptanceAnswer): Promise<Accepted> {
  const bound = await findIdempotencyKey(deps.db, command.orgId, command.idempotencyKey);
  if (bound) return replay(bound, command.fingerprint);
  const priced = price(command);
  if ('faults' in priced) throw new ValidationError(priced.faults);
  const accepted = await deps.db.transaction((tx) => commit(deps, tx, command, priced.pricing, answer));
  deps.dispatcher.nudge();
  return accepted;
}

async function commit(deps: ApiDeps, tx: Tx, command: SettlementCommand, pricing: Pricing, answer: AcceptanceAnswer): Promise<Accepted> {
  const recipient = await getRecipientForShare(tx, command.orgId, command.recipientId);
  refuseUnpayable(recipient, pricing);
  const settlement = settlementOf(deps, command, pricing);
  const body = Buffer.from(JSON.stringify(answer.present(settlement)));
  const { settlementId, createdAt } = settlement;
  const first = await bindIdempotencyKey(tx, {
    orgId: command.orgId,
    key: command.idempotencyKey,
    ...command.fingerprint,
    resourceId: settlementId,
    responseStatus: answer.status,
    responseBody: body,
    createdAt,
  });
  if (!first) {
    const winner = await findIdempotencyKey(tx, command.orgId, command.idempotencyKey);
    if (!winner) throw new Error(`idempotency key of ${settlementId} was neither bound nor found`);
    return replay(winner, command.fingerprint);
  }
  const sealed = command.paymentToken === null ? null : deps.sealer.seal(command.paymentToken, `settlement.payment_token:${settlementId}`);
  await insertSettlement(tx, settlement, sealed);
  await enqueue(tx, settlementMessage(settlement, null, command.requestId));
  return { settlementId, status: answer.status, body, replayed: false };
}

function replay(bound: BoundKey, fingerprint: CommandFingerprint): Accepted {
  if (!bound.requestHash.equals(fingerprint.requestHash)) throw new DomainError('idempotency_key_reused', { mismatch: mismatchOf(bound, fingerprint) });
  return { settlementId: bound.resourceId, status: bound.responseStatus, body: bound.responseBody, replayed: true };
}

function refuseUnpayable(recipient: Recipient, pricing: Pricing): void {
  if (!recipient.isActive) throw new DomainError('state_conflict', { current_state: 'inactive' }, 'The recipient is inactive and takes no new settlement.');
  const faults = payoutFaults(recipient, CORRIDORS[pricing.corridor], pricing.payoutRail);
  if (faults.length > 0) throw new ValidationError(faults);
}

function settlementOf(deps: ApiDeps, command: SettlementCommand, pricing: Pricing): Settlement {
  return acceptedSettlement({
    ...pricing,
    settlementId: settlementIdOf(command.orgId, command.idempotencyKey),
    orgId: command.orgId,
    origin: command.origin,
    recipientId: command.recipientId,
    purpose: command.purpose,
    reference: command.reference,
    metadata: command.metadata,
    environment: environmentName(deps.config.runtime),
    requestId: command.requestId,
    createdAt: deps.now(),
  });
}
