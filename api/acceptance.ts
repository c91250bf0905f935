/**
 * Accepting a settlement (contract §6): the one place where a command becomes a durable record, for every route
 * that makes settlements. The key, the record, its event and the request to start its workflow are one transaction;
 * the answer is made once and is the same bytes for ever.
 */
import type { Tx } from '../db/client.ts';
import { settlementIdOf } from '../db/id.ts';
import { type Answer, bindAnswer, findAnswer, type KeyedRequest } from '../db/queries/idempotency-key.ts';
import { enqueue } from '../db/queries/outbox.ts';
import { getRecipientForShare } from '../db/queries/recipient.ts';
import { insertSettlement, paymentTokenBinding } from '../db/queries/settlement.ts';
import { CORRIDORS } from '../domain/corridor.ts';
import { DomainError, type FieldFault, requireNoFaults, ValidationError } from '../domain/error.ts';
import { settlementMessage } from '../domain/outbox.ts';
import { type Pricing, type PricingInput, price } from '../domain/pricing.ts';
import { payoutFaults, type Recipient } from '../domain/recipient.ts';
import { environmentName } from '../domain/runtime.ts';
import { acceptedSettlement, type Origin, type Purpose, type Settlement } from '../domain/settlement.ts';
import { openAccessToken } from './banklink-token.ts';
import type { ApiDeps } from './deps.ts';
import { requireOpenGates } from './gate.ts';

export type SettlementCommand = PricingInput &
  KeyedRequest & {
    readonly requestId: string;
    readonly origin: Origin;
    readonly recipientId: string;
    readonly purpose: Purpose | null;
    readonly reference: string | null;
    readonly metadata: Record<string, string>;
    /** The payer's card token, or for `ach` the access token of bank linking. */
    readonly paymentToken: string | null;
  };

/** How the accepting route answers; kept with the key. */
export type AcceptanceAnswer = {
  readonly status: number;
  present(settlement: Settlement): Readonly<Record<string, unknown>>;
};

export type Accepted = Omit<Answer, 'resourceId'> & { readonly settlementId: string };

/**
 * Accepts a settlement, or answers as the key's first use was answered.
 *
 * @throws DomainError `idempotency_key_reused`, `not_found`, `state_conflict`, `launch_gates_closed`; ValidationError.
 *   None binds the key.
 */
export async function acceptSettlement(
  deps: ApiDeps,
  command: SettlementCommand,
  answer: AcceptanceAnswer,
): Promise<Accepted> {
  const priced = price(command);
  const payer = payerOf(deps, command);
  if ('faults' in priced || 'faults' in payer) {
    // A bound key is answered as it was, whatever its command would be worth now.
    const answered = await findAnswer(deps.db, command);
    if (answered) return acceptedOf(answered);
    throw new ValidationError([priced, payer].flatMap((part) => ('faults' in part ? part.faults : [])));
  }
  const accepted = await deps.db.transaction((tx) =>
    commit(deps, tx, { ...command, ...payer }, priced.pricing, answer),
  );
  deps.dispatcher.nudge();
  return accepted;
}

/**
 * The card, or the account behind a bank-link token, which only the organization that linked it can name (contract
 * §10).
 */
function payerOf(
  deps: ApiDeps,
  command: SettlementCommand,
): Pick<SettlementCommand, 'paymentToken'> | { readonly faults: readonly FieldFault[] } {
  if (command.paymentMethod !== 'ach' || command.paymentToken === null) return { paymentToken: command.paymentToken };
  const account = openAccessToken(deps.sealer, command.orgId, command.paymentToken);
  return account === undefined
    ? {
        faults: [
          {
            field: 'banklink_account_token',
            rule: "must be an access token that bank linking gave to the caller's organization",
          },
        ],
      }
    : { paymentToken: account };
}

async function commit(
  deps: ApiDeps,
  tx: Tx,
  command: SettlementCommand,
  pricing: Pricing,
  answer: AcceptanceAnswer,
): Promise<Accepted> {
  const settlement = settlementOf(deps, command, pricing);
  const body = Buffer.from(JSON.stringify(answer.present(settlement)));
  const { settlementId, createdAt } = settlement;
  const accepted = acceptedOf(
    await bindAnswer(tx, command, { resourceId: settlementId, status: answer.status, body }, createdAt),
  );
  if (accepted.replayed) return accepted;
  // Judged once the key is ours: a replay stays a replay whatever became of the recipient, and a refusal unbinds it.
  refuseUnpayable(await getRecipientForShare(tx, command.orgId, command.recipientId), pricing);
  await requireOpenGates(deps, tx, pricing.corridor);
  const sealed =
    command.paymentToken === null ? null : deps.sealer.seal(command.paymentToken, paymentTokenBinding(settlementId));
  await insertSettlement(tx, settlement, sealed);
  await enqueue(tx, settlementMessage(settlement, null, command.requestId));
  return accepted;
}

const acceptedOf = ({ resourceId, ...answer }: Answer): Accepted => ({ ...answer, settlementId: resourceId });

function refuseUnpayable(recipient: Recipient, pricing: Pricing): void {
  if (!recipient.isActive)
    throw new DomainError(
      'state_conflict',
      { current_state: 'inactive' },
      'The recipient is inactive and takes no new settlement.',
    );
  requireNoFaults(payoutFaults(recipient, CORRIDORS[pricing.corridor], pricing.payoutRail));
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
    environment: environmentName(deps.runtime),
    requestId: command.requestId,
    createdAt: deps.now(),
  });
}
