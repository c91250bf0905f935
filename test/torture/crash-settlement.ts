/** What makes the API and the worker pass the crash points of settlements and verifications. */
import { SWEEP_ID, settlementWorkflowId } from '../../domain/workflow-id.ts';
import { resolveReview } from './course.ts';
import { type Pass, requireStatus, send, until, type World } from './crash-world.ts';
import { playScenario } from './oracle.ts';
import { sendProviderEvent } from './provider.ts';
import type { Scenario } from './scenario.ts';
import { authorize, createRecipient, decide } from './tenant.ts';

/** The simplest scenario: a card that pays, and a payout that is confirmed. */
const SIMPLEST: Scenario = {
  payment: 'card',
  cardToken: 'tok_visa',
  achToken: 'public-sandbox-checking',
  amountMinor: 25_000,
  name: 'plain',
  verified: false,
  copies: 1,
  reusesKey: false,
  acts: [],
  review: 'paid',
  refund: 'nothing',
};

export const play =
  (change: Partial<Scenario> = {}): Pass =>
  async ({ deps, tenant }) => {
    const { violations } = await playScenario(deps, tenant, 0, { ...SIMPLEST, ...change });
    const [first] = violations;
    if (first) throw new Error(`${first.rule}: ${first.detail}`);
  };

export const cancel = play({ payment: 'wire', acts: [{ pauseMs: 200, kind: 'cancel' }] });
export const payByWire = play({
  payment: 'wire',
  acts: [{ pauseMs: 200, kind: 'collected', size: 'full', currency: 'own', copies: 2 }],
});

/** @returns the settlement's id */
async function settle(world: World, recipientId: string, amount: string, path: string, more: object): Promise<string> {
  const { deps, tenant } = world;
  const body = { corridor: 'US-JM', amount, recipient_id: recipientId, payout_rail: 'bank_transfer', ...more };
  const headers = authorize(tenant, { 'idempotency-key': crypto.randomUUID() });
  const accepted = await deps.http.untilAnswered({ method: 'POST', path, headers, body });
  return requireStatus(accepted, 201, 202).body.settlement_id;
}

const settleInternally = (world: World, recipientId: string, amount: string) =>
  settle(world, recipientId, amount, '/v1/caribbean/settle', {});

const awaitStatus = (world: World, settlementId: string, status: string): Promise<true> =>
  until(`${settlementId} ${status}`, async () => {
    const { body } = await send(world, world.tenant, 'GET', `/v2/settle/${settlementId}`);
    return body.status === status ? true : undefined;
  });

/** Nobody pays until its wait is over. */
export const expire: Pass = async (world) => {
  const settlementId = await createWaiting(world);
  await awaitStatus(world, settlementId, 'awaiting_funds');
  // Its clock may be moved a second time after a crash: then it has expired already.
  const path = `/v2/test-helpers/settlements/${settlementId}/advance`;
  requireStatus(await send(world, world.tenant, 'POST', path, {}), 202, 409);
  await awaitStatus(world, settlementId, 'expired');
};

export const settleByCard: Pass = async (world) => {
  const more = { payment_method: 'card', card_token: 'tok_visa' };
  const settlementId = await settle(world, world.recipientId, '250.00', '/v2/settle', more);
  await awaitStatus(world, settlementId, 'settled');
};

/** It is held until its recipient is verified. */
const verifyWhileHeld: Pass = async (world) => {
  const { deps, tenant } = world;
  const recipientId = await createRecipient(deps.http, tenant, 'Marcia Brown');
  const settlementId = await settleInternally(world, recipientId, '1000.00');
  await awaitStatus(world, settlementId, 'compliance_hold');
  if (!(await decide(deps.http, tenant, recipientId, 'verified'))) throw new Error('the decision was refused');
  await awaitStatus(world, settlementId, 'settled');
};

/** Each wait ends: for a decision, for the money, and for the rail. */
export const endWaits: Pass = async (world) => {
  await Promise.all([verifyWhileHeld(world), expire(world), createInReview(world)]);
};

/** Its payout has no answer until the test helper sends one. */
export const answerPayout: Pass = async (world) => {
  const { deps, tenant } = world;
  const recipientId = await createRecipient(deps.http, tenant, 'PAYOUT PENDING Brown');
  const settlementId = await settleInternally(world, recipientId, '250.00');
  await awaitStatus(world, settlementId, 'paying_out');
  const path = `/v2/test-helpers/settlements/${settlementId}/events`;
  // Sent again after a crash, it is one more event about the same payout: only the first one counts.
  requireStatus(await send(world, tenant, 'POST', path, { event: 'payout_confirmed' }), 202, 409);
  await awaitStatus(world, settlementId, 'settled');
};

/** A payout without an answer until its wait is over. */
export const createInReview = async (world: World): Promise<string> => {
  const { deps, tenant } = world;
  const recipientId = await createRecipient(deps.http, tenant, 'PAYOUT PENDING Brown');
  const settlementId = await settleInternally(world, recipientId, '250.00');
  await awaitStatus(world, settlementId, 'paying_out');
  const path = `/v2/test-helpers/settlements/${settlementId}/advance`;
  requireStatus(await send(world, tenant, 'POST', path, {}), 202, 409);
  await awaitStatus(world, settlementId, 'needs_review');
  return settlementId;
};

/** An operator decides. */
export const reviewPayout: Pass = async (world) => {
  const settlementId = await createInReview(world);
  await until(`the decision about ${settlementId}`, async () =>
    (await resolveReview(world.deps, settlementId, 'paid')) ? true : undefined,
  );
  await awaitStatus(world, settlementId, 'settled');
};

export const verify: Pass = async (world) => {
  const { deps, tenant } = world;
  const recipientId = await createRecipient(deps.http, tenant, 'Marcia Brown');
  if (!(await decide(deps.http, tenant, recipientId, 'verified'))) throw new Error('the decision was refused');
  await requireVerified(world, recipientId);
};

/** The recipient's name makes the simulated provider approve. */
export const verifyByProvider: Pass = async (world) => {
  const { deps, tenant } = world;
  const recipientId = await createRecipient(deps.http, tenant, 'KYC APPROVE Brown');
  const body = { recipient_id: recipientId, org_id: tenant.orgId };
  requireStatus(await send(world, tenant, 'POST', '/v1/kyc/idverify/applicant', body), 201);
  await requireVerified(world, recipientId);
};

const requireVerified = (world: World, recipientId: string) =>
  until(`verification of ${recipientId}`, async () => {
    const { body } = await send(world, world.tenant, 'GET', `/v1/kyc/status/${recipientId}`);
    if (body.verifications.length !== 1) throw new Error(`${body.verifications.length} verifications were opened`);
    return body.verification_status === 'verified' ? true : undefined;
  });

/** A settlement that waits: an operator can do something to it. */
export const createWaiting = async (world: World): Promise<string> => {
  return await settle(world, world.recipientId, '250.00', '/v2/settle', { payment_method: 'wire' });
};

/** A settlement of 250.00 whose payer sent 50.00 too much. */
export const createOverpaid = async (world: World): Promise<string> => {
  const settlementId = await createWaiting(world);
  const event = { id: `evt_${settlementId}`, settlementId, what: 'collected', currency: 'USD' } as const;
  requireStatus(await sendProviderEvent(world.deps.http, 'wire', { ...event, amountMinor: 30_000 }), 200);
  await awaitStatus(world, settlementId, 'settled');
  return settlementId;
};

/** Somebody pressed "Request Cancellation" in Temporal UI. */
export const cancelInTemporal: Pass = async (world) => {
  const settlementId = await createWaiting(world);
  await awaitStatus(world, settlementId, 'awaiting_funds');
  await world.deps.temporal.workflow.getHandle(settlementWorkflowId(settlementId)).cancel();
  await awaitStatus(world, settlementId, 'canceled');
};

/** A sweep begins now, even if one is under way. It commits even when it finds nothing. */
export const sweep: Pass = async ({ deps }) => {
  await deps.temporal.schedule.getHandle(SWEEP_ID).trigger('ALLOW_ALL');
};
