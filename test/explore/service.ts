/**
 * The moves of the exploration, done by the shells that production runs: activities and commands, on PostgreSQL. Only
 * the rail is a fake, so that a call to it can be slow, lost or repeated.
 */
import { randomUUID } from 'node:crypto';
import { payoutAnswer } from '../../activities/providers/payout-rail.ts';
import { sandboxActivities } from '../../activities/sandbox.ts';
import { type SettlementActivityInput, settlementActivities } from '../../activities/settlement.ts';
import { acceptSettlement } from '../../db/commands/acceptance.ts';
import { commit } from '../../db/commands/commit.ts';
import { recordEvidence } from '../../db/commands/evidence.ts';
import { receiveProviderEvent } from '../../db/commands/provider-event.ts';
import { requestResolution } from '../../db/commands/review.ts';
import { cancelSettlement, cancelSettlementAsOperator, recordRefund } from '../../db/commands/settlement.ts';
import { advanceSettlement } from '../../db/commands/test-helper.ts';
import { newId } from '../../db/id.ts';
import { fingerprintOf } from '../../db/queries/idempotency-key.ts';
import { lockEvidenceTarget } from '../../db/queries/settlement.ts';
import { readKnownFacts } from '../../db/queries/settlement-facts.ts';
import { DomainError } from '../../domain/error.ts';
import { price } from '../../domain/pricing.ts';
import type { NewEvidence } from '../../domain/settlement/evidence.ts';
import type { Happening, HappeningOf } from '../../domain/settlement/happening.ts';
import { activityDeps } from '../support/activity.ts';
import type { Caller, TestApi } from '../support/api.ts';
import type { TestClock } from '../support/fixture.ts';
import { createRail } from '../support/payout-rail.ts';
import type { Move, Played } from './move.ts';
import { ANSWER_ID } from './payout.ts';
import type { Answer, Situation } from './situation.ts';
import { STARTED_SETTLEMENT, type Start } from './start.ts';
import { createGate, openRecipient } from './surroundings.ts';

export type World = { readonly api: TestApi; readonly partner: Caller; readonly clock: TestClock };

/** The state that forbids what a shell was asked; undefined when it did it. */
export type Refused = string | undefined;

const { requestId } = STARTED_SETTLEMENT;
const ACT = { operator: 'ana', note: 'a story', requestId } as const;

export type Opening = { readonly start: Start; readonly isScreeningHit: boolean; readonly at: Date };

/** A settlement that was just accepted, and what plays moves with it. */
export async function openService(world: World, { start, isScreeningHit, at }: Opening) {
  const { api, partner, clock } = world;
  const { orgId } = partner;
  clock.stop(at);
  const recipient = await openRecipient(api, orgId, start, isScreeningHit);
  const settlementId = await accept(api, { orgId, recipientId: recipient.recipientId, start });
  const gate = createGate(api);
  const rail = createRail();
  const deps = { ...activityDeps(api, 'http://127.0.0.1:1', api.deps.dispatcher), now: clock.now, payoutRail: rail };
  const activities = settlementActivities(deps);
  const sandbox = sandboxActivities(deps);
  const named = { orgId, settlementId };
  const realTime = ({ now, settlement }: Situation): number => now - settlement.clockOffsetMs;

  const receive = async (evidence: NewEvidence, { settlement: { paymentMethod } }: Situation): Promise<unknown> => {
    const { kind, provider, eventId, amountMinor, currency, failure } = evidence;
    const claimed = { kind, provider, amountMinor, currency, failure };
    if (provider === 'cardproc' || provider === 'bankledger')
      return await receiveProviderEvent(
        api.deps,
        { provider, eventId: `${eventId}:${settlementId}`, type: kind, bytes: Buffer.from(eventId), requestId },
        { about: 'settlement', settlementId, methods: [paymentMethod], evidence: claimed },
      );
    if (eventId === ANSWER_ID && (kind === 'payout_confirmed' || kind === 'payout_refused'))
      return await sandbox.sendSandboxEvent({ ...named, commandId: newId(), event: kind, amountMinor: '0' });
    return await commit(api.deps, 'settlement.answer_payout', async (tx) => {
      const settlement = await lockEvidenceTarget(tx, settlementId);
      const said = { ...evidence, evidenceId: newId(), eventId: `${eventId}:${settlementId}` };
      if (!settlement) return;
      const { exceptions } = await readKnownFacts(tx, settlementId);
      await recordEvidence(tx, { settlement, exceptions }, said, { at: clock.now(), requestId });
    });
  };
  const cancel = (by: HappeningOf<'cancel'>, input: SettlementActivityInput): Promise<unknown> => {
    if (!by.signals) return activities.cancelOnRequest(input);
    return by.by === 'partner'
      ? cancelSettlement(api.deps, orgId, settlementId, requestId)
      : cancelSettlementAsOperator(api.deps, settlementId, ACT);
  };
  const happen = async (happening: Happening, before: Situation): Promise<unknown> => {
    const input = { ...named, nowMs: realTime(before) };
    switch (happening.type) {
      case 'evidence':
        return await receive(happening.evidence, before);
      case 'review':
        return await activities[before.settlement.version === 1 ? 'admitSettlement' : 'reviewSettlement'](input);
      case 'cancel':
        return await cancel(happening, input);
      case 'begin_payout':
        return await rail.untilCalled(activities.sendPayout(input));
      case 'rail_answered':
        return await rail.answer(happening.answer && payoutAnswer(settlementId, happening.answer.kind as Answer));
      case 'refund':
        return await recordRefund(api.deps, settlementId, happening, ACT);
    }
  };
  /** What `decide` is not asked about. */
  const change = async (before: Situation, after: Situation): Promise<void> => {
    if (after.isGateClosed !== before.isGateClosed) await gate.set(after.isGateClosed);
    if (after.attempts.length < before.attempts.length) await rail.lose();
    if (after.settlement.clockOffsetMs > before.settlement.clockOffsetMs)
      await advanceSettlement(api.deps, orgId, settlementId, { byMs: undefined, now: clock.now(), requestId });
    if (after.resolution && !before.resolution)
      await requestResolution(api.deps, settlementId, { ...ACT, outcome: after.resolution.outcome });
    await recipient.change(before.identity, after.identity);
  };
  return {
    settlementId,
    recipientId: recipient.recipientId,
    /** How many calls to the rail are under way. */
    countCalls: rail.count,
    play: async ({ aheadMs = 0 }: Move, before: Situation, { situation, asked }: Played): Promise<Refused> => {
      clock.stop(new Date(realTime(before) + aheadMs));
      return await refusedIn(asked ? happen(asked.happening, before) : change(before, situation));
    },
    close: async (): Promise<void> => {
      while (rail.count() > 0) await rail.lose();
      await gate.set(false);
    },
  };
}

async function refusedIn(asked: Promise<unknown>): Promise<Refused> {
  try {
    await asked;
    return undefined;
  } catch (error) {
    if (error instanceof DomainError && error.code === 'state_conflict') return String(error.extras['current_state']);
    throw error;
  }
}

type Acceptance = { readonly orgId: string; readonly recipientId: string; readonly start: Start };

async function accept(api: TestApi, { orgId, recipientId, start }: Acceptance): Promise<string> {
  const { corridor, origin, purpose, reference, metadata } = STARTED_SETTLEMENT;
  const { amount, method } = start;
  const bytes = Buffer.alloc(0);
  const request = {
    orgId,
    recipientId,
    requestId,
    idempotencyKey: randomUUID(),
    fingerprint: fingerprintOf({ method: 'POST', route: '', bytes, fields: {} }),
    origin,
    priced: price({ corridor, amount, paymentMethod: method }),
    purpose,
    reference,
    metadata,
    cardToken: method === 'card' ? 'tok_visa' : null,
    banklinkToken: null,
  };
  const { resourceId } = await acceptSettlement(api.deps, request, {
    status: 202,
    showsPayee: false,
    present: () => ({}),
  });
  return resourceId;
}
