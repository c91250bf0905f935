/**
 * What is done to a settlement outside of its workflow (contract §6). Accepting one is a single statement: the
 * idempotency key, the record, its event, and the outbox row that starts its workflow. Every other command locks the
 * settlement's row first. That orders it with evidence that arrives at the same moment: the first commit decides.
 */
import { CORRIDORS } from '../../domain/corridor.ts';
import { DomainError, type FieldFault, ValidationError } from '../../domain/error.ts';
import { type Evidence, fundingOutcome } from '../../domain/evidence.ts';
import type { ClosedGate } from '../../domain/gate.ts';
import { settlementMessage } from '../../domain/outbox.ts';
import { freezePayee, type Payee, type PayeeResource, payeeResource } from '../../domain/payee.ts';
import type { Priced, Pricing } from '../../domain/pricing.ts';
import { payoutFaults, type Recipient } from '../../domain/recipient.ts';
import { environmentName } from '../../domain/runtime.ts';
import {
  acceptedSettlement,
  CANCELABLE_STATUSES,
  isTerminal,
  type Origin,
  type Purpose,
  type Settlement,
  settlementTime,
} from '../../domain/settlement.ts';
import { openAccessToken } from '../banklink-token.ts';
import type { Tx } from '../client.ts';
import { settlementIdOf } from '../id.ts';
import { sealPayee } from '../payee.ts';
import { getAcceptanceFacts, insertAcceptance } from '../queries/acceptance.ts';
import { insertAuditEntry, type OperatorAct } from '../queries/audit.ts';
import { numberedEvent } from '../queries/event.ts';
import { listPendingEvidence } from '../queries/evidence.ts';
import { forbiddenBy } from '../queries/gate.ts';
import {
  type Answer,
  bindAnswer,
  boundKeyOf,
  findAnswer,
  getAnswer,
  type KeyedRequest,
  replay,
} from '../queries/idempotency-key.ts';
import { enqueue } from '../queries/outbox.ts';
import { toPayable } from '../queries/recipient.ts';
import { acceptedEvent, getSettlementOwner, lockSettlement, paymentTokenBinding } from '../queries/settlement.ts';
import {
  changeOf,
  type SettlementChange,
  withMessage,
  withMove,
  withPending,
  writeMove,
} from '../queries/settlement-change.ts';
import { type CommandDeps, type CommitDeps, commit, commitStatement } from './commit.ts';

/** A settlement as a route asks for it. */
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
  present(settlement: Settlement, payee: PayeeResource | null): Readonly<Record<string, unknown>>;
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
    // A bound key is answered as it was, even if the same request would be refused now.
    const answered = await findAnswer(deps.db, request);
    if (answered) return answered;
    throw new ValidationError([priced, payer].flatMap((part) => ('faults' in part ? part.faults : [])));
  }
  const { pricing } = priced;
  const { corridor } = pricing;
  const facts = await getAcceptanceFacts(deps.db, request, { environment: environmentName(deps.runtime), corridor });
  if (facts.bound) return replay(facts.bound, request.fingerprint);
  const payable = facts.recipient && toPayable(deps.sealer, facts.recipient);
  const payee = payable && freezePayee(payable.recipient, pricing.payoutRail, payable.accountNumber);
  const settlement = newSettlement(deps, request, { pricing, payee });
  const first = answerTo(settlement, answer.status, answer.present(settlement, payee ? payeeResource(payee) : null));
  const refusal = refusalOf(payable?.recipient, pricing, {
    gates: forbiddenBy(facts.gateEvidence, { runtime: deps.runtime, corridor, now: settlement.createdAt }),
  });
  if (refusal) return await refuse(deps, request, first, refusal);
  const acceptance = {
    key: boundKeyOf(request, first, settlement.createdAt),
    settlement,
    paymentTokenSealed: sealedToken(deps, settlement.settlementId, payer.token),
    event: numberedEvent(acceptedEvent(settlement), 1),
    message: settlementMessage(settlement, null, request.requestId),
  };
  const isFirst = await commitStatement(deps, 'settlement.accept', (db) => insertAcceptance(db, acceptance));
  return isFirst ? { ...first, replayed: false } : await getAnswer(deps.db, request);
}

const answerTo = (
  { settlementId: resourceId }: Settlement,
  status: number,
  resource: Readonly<Record<string, unknown>>,
): Omit<Answer, 'replayed'> => ({ resourceId, status, body: Buffer.from(JSON.stringify(resource)) });

/**
 * Refuses a request, unless another request with its key is accepted at this moment: then the answer is that of the
 * other one. Binding the key waits for the other request. The refusal rolls the binding back.
 */
const refuse = (
  deps: CommandDeps,
  request: SettlementRequest,
  answer: Omit<Answer, 'replayed'>,
  refusal: Error,
): Promise<Answer> =>
  commit(deps, 'settlement.accept', async (tx) => {
    const bound = await bindAnswer(tx, request, answer, deps.now());
    if (bound.replayed) return bound;
    throw refusal;
  });

type Payer = { readonly token: string | null } | { readonly faults: readonly FieldFault[] };

/**
 * The card, or the account behind a bank-link token. Only the organization that linked it can use it (contract §10).
 */
function payerOf({ sealer }: Pick<CommandDeps, 'sealer'>, request: SettlementRequest): Payer {
  const { orgId, cardToken, banklinkToken } = request;
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

/** Why the settlement is not accepted; undefined when it is. The recipient is judged before the gates (contract §2). */
function refusalOf(
  recipient: Recipient | undefined,
  pricing: Pricing,
  { gates }: { readonly gates: readonly ClosedGate[] },
): Error | undefined {
  if (!recipient) return new DomainError('not_found');
  if (!recipient.isActive)
    return new DomainError(
      'state_conflict',
      { current_state: 'inactive' },
      'The recipient is inactive and takes no new settlement.',
    );
  const faults = payoutFaults(recipient, CORRIDORS[pricing.corridor], pricing.payoutRail);
  if (faults.length > 0) return new ValidationError(faults);
  return gates.length > 0 ? new DomainError('launch_gates_closed', { gates }) : undefined;
}

function newSettlement(
  deps: CommandDeps,
  request: SettlementRequest,
  { pricing, payee }: { readonly pricing: Pricing; readonly payee: Payee | undefined },
): Settlement {
  const settlementId = settlementIdOf(request.orgId, request.idempotencyKey);
  const sealed = payee && sealPayee(deps.sealer, settlementId, payee);
  return acceptedSettlement({
    ...pricing,
    settlementId,
    payeeSealed: sealed?.payeeSealed ?? null,
    payeeSha256: sealed?.payeeSha256 ?? null,
    orgId: request.orgId,
    origin: request.origin,
    recipientId: request.recipientId,
    purpose: request.purpose,
    reference: request.reference,
    metadata: request.metadata,
    environment: environmentName(deps.runtime),
    requestId: request.requestId,
    createdAt: deps.now(),
  });
}

/**
 * Cancels a settlement for its partner and signals its workflow. Money that came in is booked as due back. Canceling a
 * canceled settlement changes nothing.
 *
 * @throws DomainError `not_found`; `state_conflict` past awaiting_funds, or when committed evidence has decided already
 */
export async function cancelSettlement(
  deps: CommitDeps & Pick<CommandDeps, 'now'>,
  orgId: string,
  settlementId: string,
  requestId: string,
): Promise<Settlement> {
  return await commit(deps, 'settlement.cancel', async (tx) => {
    const settlement = await lockSettlement(tx, orgId, settlementId);
    return await cancelLocked(tx, settlement, { now: deps.now(), reason: 'canceled_by_partner', requestId });
  });
}

/** As `cancelSettlement`, for an operator, who knows no organization; with an audit entry. */
export async function cancelSettlementAsOperator(
  deps: CommitDeps & Pick<CommandDeps, 'now'>,
  settlementId: string,
  { operator, note, requestId }: OperatorAct,
): Promise<Settlement> {
  return await commit(deps, 'settlement.cancel_as_operator', async (tx) => {
    const now = deps.now();
    const orgId = await getSettlementOwner(tx, settlementId);
    const settlement = await lockSettlement(tx, orgId, settlementId);
    const canceled = await cancelLocked(tx, settlement, { now, reason: 'canceled_by_operator', requestId });
    const action = 'settlement_cancel';
    await insertAuditEntry(tx, orgId, { objectId: settlementId, action, operator, note, at: now });
    return canceled;
  });
}

/**
 * As `cancelSettlementAsOperator`, for a cancellation of the workflow's run in Temporal UI (contract §6). Temporal does
 * not tell the workflow who requested it. Where the settlement cannot be canceled, nothing changes. The workflow itself
 * calls this, so it is not signalled.
 *
 * @param now the workflow's time
 */
export async function cancelSettlementOnRequest(
  deps: CommitDeps,
  orgId: string,
  settlementId: string,
  now: Date,
): Promise<Settlement> {
  return await commit(deps, 'settlement.cancel_on_request', async (tx) => {
    const settlement = await lockSettlement(tx, orgId, settlementId);
    const pending = await listPendingEvidence(tx, settlementId);
    if (!isCancelable(settlement, pending)) return settlement;
    const { requestId } = settlement;
    const cancellation = cancellationOf(settlement, pending, { now, reason: 'canceled_by_operator', requestId });
    const canceled = await writeMove(tx, cancellation);
    const act = { action: 'settlement_cancel', operator: 'unknown', note: 'Temporal UI' } as const;
    await insertAuditEntry(tx, orgId, { objectId: settlementId, ...act, at: now });
    return canceled;
  });
}

/** In awaiting_funds, evidence that was committed before decides, although the workflow has not acted on it yet. */
const isCancelable = (settlement: Settlement, pending: readonly Evidence[]): boolean =>
  CANCELABLE_STATUSES.includes(settlement.status) &&
  (settlement.status !== 'awaiting_funds' || fundingOutcome(settlement, pending) === undefined);

type Cancellation = { readonly now: Date; readonly reason: string; readonly requestId: string };

/** Cancels for somebody outside of the workflow, and signals the workflow. */
async function cancelLocked(tx: Tx, settlement: Settlement, cancellation: Cancellation): Promise<Settlement> {
  const { status, settlementId } = settlement;
  if (status === 'canceled') return settlement;
  const pending = await listPendingEvidence(tx, settlementId);
  if (!isCancelable(settlement, pending)) throw new DomainError('state_conflict', { current_state: status });
  const message = settlementMessage(settlement, 'canceled', cancellation.requestId);
  return await writeMove(tx, withMessage(cancellationOf(settlement, pending, cancellation), message));
}

function cancellationOf(
  settlement: Settlement,
  pending: readonly Evidence[],
  { now, reason, requestId }: Cancellation,
): SettlementChange {
  const change = changeOf(settlement, { at: settlementTime(settlement, now), requestId });
  return withPending(withMove(change, { to: 'canceled', reason }), pending);
}

/**
 * Has a settlement's workflow started where it does not run, and signalled where it does. The workflow reads the
 * database and continues from there, so this may be repeated. Writes an audit entry.
 *
 * @throws DomainError `not_found`; `state_conflict` for a settlement that has ended
 */
export async function redispatchSettlement(
  deps: CommitDeps & Pick<CommandDeps, 'now'>,
  settlementId: string,
  { operator, note, requestId }: OperatorAct,
): Promise<void> {
  await commit(deps, 'settlement.redispatch', async (tx) => {
    const orgId = await getSettlementOwner(tx, settlementId);
    const settlement = await lockSettlement(tx, orgId, settlementId);
    if (isTerminal(settlement.status)) {
      const { status } = settlement;
      throw new DomainError('state_conflict', { current_state: status }, `The settlement has ended: it is ${status}.`);
    }
    await enqueue(tx, settlementMessage(settlement, 'redispatched', requestId));
    const action = 'settlement_redispatch';
    await insertAuditEntry(tx, orgId, { objectId: settlementId, action, operator, note, at: deps.now() });
  });
}
