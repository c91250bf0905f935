/**
 * Accepts a settlement (contract §6) by a single statement: the idempotency key, the record, its event, and the outbox
 * row that starts its workflow.
 */
import { CORRIDORS } from '../../domain/corridor.ts';
import { DomainError, type FieldFault, stateConflict, ValidationError } from '../../domain/error.ts';
import type { ClosedGate } from '../../domain/gate.ts';
import { settlementMessage } from '../../domain/outbox.ts';
import { freezePayee, type Payee, type PayeeResource, payeeResource } from '../../domain/payee.ts';
import type { Priced, Pricing } from '../../domain/pricing.ts';
import { payoutFaults, type Recipient } from '../../domain/recipient.ts';
import { environmentName } from '../../domain/runtime.ts';
import { acceptedEvent } from '../../domain/settlement/change.ts';
import { acceptedSettlement, type Origin, type Purpose, type Settlement } from '../../domain/settlement/state.ts';
import { openAccessToken } from '../banklink-token.ts';
import { settlementIdOf } from '../id.ts';
import { sealPayee } from '../payee.ts';
import { getAcceptanceFacts, insertAcceptance } from '../queries/acceptance.ts';
import { forbiddingGatesOfCorridor } from '../queries/gate.ts';
import {
  type Answer,
  bindAnswer,
  boundKeyOf,
  findAnswer,
  getAnswer,
  type KeyedRequest,
  replay,
} from '../queries/idempotency-key.ts';
import { openRecipient } from '../queries/recipient.ts';
import { paymentTokenBinding } from '../queries/settlement.ts';
import { settlementEvent } from '../queries/settlement-change.ts';
import type { Sealer } from '../seal.ts';
import { type CommandDeps, commit, commitStatement } from './commit.ts';

/** A settlement as a route requests it. */
export type SettlementRequest = KeyedRequest & {
  readonly requestId: string;
  readonly origin: Origin;
  readonly priced: Priced;
  readonly recipientId: string;
  readonly purpose: Purpose | null;
  readonly reference: string | null;
  readonly metadata: Record<string, string>;
  /** The payer's card; null unless it is paid by card. */
  readonly cardToken: string | null;
  /** The access token of bank linking; null unless it is paid by ACH. */
  readonly banklinkToken: string | null;
};

/** How the accepting route answers. The answer is made once; every replay is the same bytes. */
export type AcceptanceAnswer = {
  readonly status: number;
  /** Whether the answer names the payee. Such an answer is stored sealed. */
  readonly showsPayee: boolean;
  present(settlement: Settlement, payee: PayeeResource): Readonly<Record<string, unknown>>;
};

/**
 * Accepts a settlement, or answers as the key's first use was answered.
 *
 * @returns the answer; `resourceId` is the settlement's id
 * @throws DomainError `idempotency_key_reused`, `not_found`, `state_conflict`, `launch_gates_closed`; ValidationError.
 *   None of them binds the key.
 */
export async function acceptSettlement(
  deps: CommandDeps,
  request: SettlementRequest,
  answer: AcceptanceAnswer,
): Promise<Answer> {
  const { priced } = request;
  const payer = payerOf(deps, request);
  if ('faults' in priced || 'faults' in payer) {
    // A bound key gets its first answer again, even if the request would be refused now.
    const answered = await findAnswer(deps, request);
    if (answered) return answered;
    throw new ValidationError([priced, payer].flatMap((part) => ('faults' in part ? part.faults : [])));
  }
  const { pricing } = priced;
  const { corridor } = pricing;
  const facts = await getAcceptanceFacts(deps.db, request, { environment: environmentName(deps.runtime), corridor });
  if (facts.bound) return replay(deps.sealer, facts.bound, request.fingerprint);
  if (!facts.recipient) return await refuse(deps, request, new DomainError('not_found', { field: 'recipient_id' }));
  const { recipient, held } = openRecipient(deps.sealer, facts.recipient);
  const now = deps.now();
  const gates = forbiddingGatesOfCorridor(facts.gateEvidence, { runtime: deps.runtime, corridor, now });
  // An erased recipient has no details that could be checked.
  if (!held) return await refuse(deps, request, inactive());
  const refusal = refusalOf(recipient, pricing, gates);
  if (refusal) return await refuse(deps, request, refusal);
  const payee = freezePayee(recipient, held.personalData, pricing.payoutRail);
  const settlement = newSettlement(deps, request, { pricing, payee, dataKey: held.dataKey, now });
  const first = answerTo(settlement, answer.status, answer.present(settlement, payeeResource(payee)));
  const acceptance = {
    key: boundKeyOf(
      request,
      first,
      now,
      answer.showsPayee ? { recipientId: recipient.recipientId, dataKey: held.dataKey } : undefined,
    ),
    settlement,
    paymentTokenSealed: sealedToken(deps, settlement.settlementId, payer.token),
    event: settlementEvent(settlement, acceptedEvent(settlement), request.requestId),
    message: settlementMessage(settlement, null, request.requestId),
  };
  const isFirst = await commitStatement(deps, 'settlement.accept', (db) => insertAcceptance(db, acceptance));
  return isFirst ? { ...first, replayed: false } : await getAnswer(deps, request);
}

const answerTo = (
  { settlementId: resourceId }: Settlement,
  status: number,
  resource: Readonly<Record<string, unknown>>,
): Omit<Answer, 'replayed'> => ({ resourceId, status, body: Buffer.from(JSON.stringify(resource)) });

/**
 * Refuses a request, unless another request with the same key is accepted at this moment. To find out, it binds the
 * key, which waits for the other request. If that one commits, both get its answer. If not, the refusal is thrown,
 * which rolls the binding back.
 */
const refuse = (deps: CommandDeps, request: SettlementRequest, refusal: Error): Promise<Answer> =>
  commit(deps, 'settlement.accept', async (tx) => {
    const bound = await bindAnswer({ db: tx, sealer: deps.sealer }, request, NO_ANSWER, { at: deps.now() });
    if (bound.replayed) return bound;
    throw refusal;
  });

/** What a refusal binds the key to. It is never committed, because the refusal rolls it back. */
const NO_ANSWER = { resourceId: '', status: 0, body: Buffer.alloc(0) };

type Payer = { readonly token: string | null } | { readonly faults: readonly FieldFault[] };

/**
 * Reads the token by which the payer pays: of a card, or of the account behind a bank-link token. Only the organization
 * that linked an account can use it (contract §10).
 */
export function payerOf(
  { sealer }: Pick<CommandDeps, 'sealer'>,
  { orgId, cardToken, banklinkToken }: Pick<SettlementRequest, 'orgId' | 'cardToken' | 'banklinkToken'>,
): Payer {
  if (banklinkToken === null) return { token: cardToken };
  const account = openAccessToken(sealer, orgId, banklinkToken);
  const rule = "must be an access token that bank linking gave to the caller's organization";
  return account === undefined ? { faults: [{ field: 'banklink_account_token', rule }] } : { token: account };
}

const sealedToken = (
  { sealer }: Pick<CommandDeps, 'sealer'>,
  settlementId: string,
  token: string | null,
): string | null => (token === null ? null : sealer.seal(token, paymentTokenBinding(settlementId)));

const inactive = (): DomainError => stateConflict('inactive', 'The recipient is inactive and takes no new settlement.');

/** Why the settlement is not accepted; undefined when it is. 422, then 409, then the gates (contract §2). */
function refusalOf(recipient: Recipient, pricing: Pricing, gates: readonly ClosedGate[]): Error | undefined {
  const faults = payoutFaults(recipient, CORRIDORS[pricing.corridor], pricing.payoutRail);
  if (faults.length > 0) return new ValidationError(faults);
  if (!recipient.isActive) return inactive();
  return gates.length > 0 ? new DomainError('launch_gates_closed', { gates }) : undefined;
}

function newSettlement(
  deps: CommandDeps,
  request: SettlementRequest,
  {
    pricing,
    payee,
    dataKey,
    now,
  }: { readonly pricing: Pricing; readonly payee: Payee; readonly dataKey: Sealer; readonly now: Date },
): Settlement {
  const settlementId = settlementIdOf(request.orgId, request.idempotencyKey);
  return acceptedSettlement({
    settlementId,
    orgId: request.orgId,
    origin: request.origin,
    recipientId: request.recipientId,
    purpose: request.purpose,
    reference: request.reference,
    metadata: request.metadata,
    environment: environmentName(deps.runtime),
    requestId: request.requestId,
    createdAt: now,
    ...pricing,
    ...sealPayee(dataKey, settlementId, payee),
  });
}
