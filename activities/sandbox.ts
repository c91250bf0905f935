/**
 * The simulated providers that collect money (contract §6): they send what the payer's token selects, and what a
 * test helper requests. The id and the bytes of a provider event follow from the settlement and the step, or from the
 * request of the test helper. So an event that is posted twice is a duplicate to the API.
 */
import { ApplicationFailure } from '@temporalio/common';
import { commit } from '../db/commands/commit.ts';
import { recordEvidence } from '../db/commands/evidence.ts';
import { findRecorded } from '../db/queries/evidence.ts';
import { findSettlement, getPaymentToken, lockEvidenceTarget, paymentTokenBinding } from '../db/queries/settlement.ts';
import { DomainError } from '../domain/error.ts';
import { commandEventId, isPayoutEvent, type PayoutEvent, type SandboxEvent } from '../domain/sandbox/event.ts';
import { isTerminal, PAYOUT_STATUSES, type Settlement, type SettlementStatus } from '../domain/settlement/state.ts';
import type { ActivityDeps } from './deps.ts';
import { COLLECTION_PROVIDERS, type CollectionProvider } from './providers/collection.ts';
import { payoutAnswer } from './providers/payout-rail.ts';

export type SandboxCollectionInput = { readonly settlementId: string; readonly orgId: string };

/** A step of the provider's plan: it sends this event `delayMs` after the step before. */
export type CollectionStep = { readonly step: number; readonly event: string; readonly delayMs: number };

/**
 * What a test helper requested. `amountMinor` is written in decimal digits. `commandId` identifies the request: it is
 * one event, however often it is sent.
 */
export type SandboxEventInput = SandboxCollectionInput & {
  readonly commandId: string;
  readonly event: SandboxEvent;
  readonly amountMinor: string;
};

/** A sandbox settlement waits this long for its money, so that a person can see the wait. */
const PROVIDER_DELAY_MS = 250;
/** A payer disputes later: before the payout a dispute would end the settlement. */
const DISPUTE_DELAY_MS = 3_000;

const isBeforePayout = (status: SettlementStatus): boolean => !isTerminal(status) && !PAYOUT_STATUSES.includes(status);

/** The dispute can be due before the payout, if the worker was down. The activity is repeated until it is under way. */
const beforePayout = () =>
  ApplicationFailure.create({
    message: 'A dispute waits until the payout is under way.',
    type: 'before_payout',
  });

export function sandboxActivities(deps: ActivityDeps) {
  return {
    /** What the payer's token selects, as a list of events. The list does not contain the token. */
    planCollection: async (input: SandboxCollectionInput): Promise<CollectionStep[]> => {
      const { settlement, provider } = await getCollection(deps, input);
      const reports = provider.plan(settlement, await getPayerToken(deps, input));
      return reports.map(({ event }, step) => ({
        step,
        event,
        delayMs: event === 'dispute_opened' ? DISPUTE_DELAY_MS : PROVIDER_DELAY_MS,
      }));
    },

    /**
     * Posts one event of the plan. When the API refuses it or is not running, and while a dispute comes before the
     * payout, the activity is retried.
     */
    postCollectionEvent: async (input: SandboxCollectionInput & { readonly step: number }): Promise<void> => {
      const { settlement, provider } = await getCollection(deps, input);
      const report = provider.plan(settlement, await getPayerToken(deps, input))[input.step];
      if (!report) throw new DomainError('not_found');
      if (report.event === 'dispute_opened' && isBeforePayout(settlement.status)) throw beforePayout();
      await provider.post(deps, provider.encode(settlement, `evt_${settlement.settlementId}_${input.step}`, report));
    },

    /** Sends one event that a test helper requested, from the provider that sends such events. */
    sendSandboxEvent: async (input: SandboxEventInput): Promise<void> => {
      const { event, commandId } = input;
      if (isPayoutEvent(event)) return await answerPayout(deps, input.settlementId, event);
      const { settlement, provider } = await getCollection(deps, input);
      await provider.post(
        deps,
        provider.encode(settlement, commandEventId(commandId), { event, amountMinor: BigInt(input.amountMinor) }),
      );
    },
  };
}

/** @throws DomainError `not_found`, also when no provider collects for the settlement */
async function getCollection(
  deps: ActivityDeps,
  { settlementId, orgId }: SandboxCollectionInput,
): Promise<{ settlement: Settlement; provider: CollectionProvider }> {
  const settlement = await findSettlement(deps.db, orgId, settlementId);
  const provider = settlement && COLLECTION_PROVIDERS[settlement.paymentMethod];
  if (!provider) throw new DomainError('not_found');
  return { settlement, provider };
}

/** The payer's card or account; null where the payment method has none. @throws SealError */
async function getPayerToken(
  deps: ActivityDeps,
  { settlementId, orgId }: SandboxCollectionInput,
): Promise<string | null> {
  const sealed = await getPaymentToken(deps.db, orgId, settlementId);
  return sealed === null ? null : deps.sealer.open(sealed, paymentTokenBinding(settlementId)).toString();
}

/**
 * The payout rail has no webhook: its answer is recorded as evidence, once, and the settlement's workflow is signalled.
 */
async function answerPayout(deps: ActivityDeps, settlementId: string, event: PayoutEvent): Promise<void> {
  await commit(deps, 'settlement.answer_payout', async (tx) => {
    const settlement = await lockEvidenceTarget(tx, settlementId);
    if (!settlement) throw new DomainError('not_found');
    const answer = payoutAnswer(settlementId, event);
    const { isRecorded, exceptions } = await findRecorded(tx, settlementId, answer);
    if (isRecorded) return;
    await recordEvidence(tx, { settlement, exceptions }, answer, { at: deps.now(), requestId: settlement.requestId });
  });
}
