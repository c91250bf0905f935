/** Plays one entry of `GET /v2/test-helpers/scenarios` and compares the result with what the list says. */
import { createHmac, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Client, isApiError, type Settlement, WaitTimeout } from '../../clients/typescript/index.ts';
import type { Scenario, ScenarioStep } from '../../domain/sandbox/scenario.ts';
import { type Partner, recipientBody } from '../sandbox/partner.ts';
import type { Narrator } from './narrator.ts';

export type ScenarioDeps = {
  readonly narrator: Pick<Narrator, 'say' | 'check'>;
  readonly partner: Partner;
  /** Decides a review, as an operator does. */
  readonly resolveReview: (settlementId: string, outcome: 'paid' | 'refused') => Promise<void>;
  /** The bank ledger: a client without a key, and the secret that signs. */
  readonly bankledger: { readonly client: Client; readonly secret: string };
};

const HELPER_ATTEMPTS_MAX = 10;
const HELPER_PAUSE_MS = 500;

/** The settlement that a scenario is about. */
export type Subject = { readonly settlementId: string; readonly recipientId: string };

/** @throws Error when an answer, the path of states, an exception or the failure differs from the scenario */
export async function playScenario(deps: ScenarioDeps, scenario: Scenario): Promise<void> {
  const { narrator, partner } = deps;
  narrator.say(`${scenario.name}: ${scenario.summary}`);
  const subject = await startSettlement(partner, scenario);
  await doSteps(deps, subject, scenario.steps);
  await checkEnd(deps, subject, scenario);
}

/** Waits until the settlement is where the step is to be done. */
export const untilDue = ({ client }: Partner, { settlementId }: Subject, { when, received }: ScenarioStep) =>
  client.settlements.wait(settlementId, {
    until: ({ status, amount_received }) => status === when && (received === undefined || amount_received === received),
  });

/** Does each step once it is due. */
export async function doSteps(deps: ScenarioDeps, subject: Subject, steps: readonly ScenarioStep[]): Promise<void> {
  for (const step of steps) {
    await untilDue(deps.partner, subject, step);
    await doStep(deps, subject, step);
  }
}

/** Waits for the end of the scenario, and compares it. */
export async function checkEnd(
  { narrator, partner }: ScenarioDeps,
  { settlementId }: Subject,
  { path, exceptions, failure_code }: Scenario,
): Promise<void> {
  const expected = { path, exceptions, failure_code };
  const until = (settlement: Settlement) => JSON.stringify(resultOf(settlement)) === JSON.stringify(expected);
  const ended = await partner.client.settlements.wait(settlementId, { until }).catch((error: unknown) => {
    if (error instanceof WaitTimeout) return error.latest as Settlement;
    throw error;
  });
  narrator.check(`its states were ${path.join(' → ')}`, resultOf(ended), expected);
}

export async function startSettlement({ client }: Partner, { given }: Scenario): Promise<Subject> {
  const { recipient_name: name, public_token, ...settlement } = given;
  const { recipient_id } = await client.recipients.create(recipientBody(name));
  const linked = public_token === undefined ? undefined : await client.banklink.exchange({ public_token });
  const { settlement_id: settlementId } = await client.settlements.create({
    ...settlement,
    recipient_id,
    ...(linked && { banklink_account_token: linked.access_token }),
  });
  return { settlementId, recipientId: recipient_id };
}

async function doStep(deps: ScenarioDeps, subject: Subject, step: ScenarioStep): Promise<void> {
  const { client } = deps.partner;
  const { settlementId } = subject;
  switch (step.do) {
    case 'send_event': {
      const amount = step.amount === undefined ? {} : { amount: step.amount };
      await untilAvailable(() => client.sandbox.sendEvent(settlementId, { event: step.event, ...amount }));
      return;
    }
    case 'advance_clock':
      await untilAvailable(() => client.sandbox.advance(settlementId, step.by === undefined ? {} : { by: step.by }));
      return;
    case 'cancel':
      await client.settlements.cancel(settlementId);
      return;
    case 'decide_verification':
      return await decideVerification(deps.partner, subject, step.decision);
    case 'resolve_review':
      return await deps.resolveReview(settlementId, step.outcome);
    case 'post_bankledger_event':
      return await postBankledgerEvent(deps, subject, step);
  }
}

/**
 * The sandbox's helpers take no idempotency key, so the client does not repeat them. Their 503 comes before the commit
 * (on a busy machine, the settlement's row is locked for too long), unless the database fails meanwhile.
 */
async function untilAvailable(act: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await act();
      return;
    } catch (error) {
      if (!isApiError(error, 'temporarily_unavailable') || attempt === HELPER_ATTEMPTS_MAX) throw error;
      await delay(HELPER_PAUSE_MS);
    }
  }
}

async function decideVerification(
  { client, orgId }: Partner,
  { recipientId }: Subject,
  status: 'verified' | 'rejected',
): Promise<void> {
  const body = { recipient_id: recipientId, org_id: orgId };
  const { verification_id: verificationId } = await client.verifications.start(body);
  const reason = status === 'rejected' ? { rejection_reason: 'The document is not readable.' } : {};
  await client.verifications.complete(verificationId, { status, ...reason });
}

async function postBankledgerEvent(
  { narrator, bankledger }: ScenarioDeps,
  { settlementId }: Subject,
  step: ScenarioStep & { do: 'post_bankledger_event' },
): Promise<void> {
  const { event, amount_reconciled, currency } = step;
  const data = {
    id: 'ep_1',
    object: 'expected_payment' as const,
    live_mode: false,
    status: event,
    amount_reconciled,
    currency,
    type: 'wire' as const,
    metadata: { settlement_id: settlementId },
  };
  const body = { id: randomUUID(), event, data };
  const signature = createHmac('sha256', bankledger.secret).update(JSON.stringify(body)).digest('hex');
  const headers = { 'X-Signature': signature };
  const answer = await bankledger.client.request('POST', '/v2/webhooks/bankledger', { headers, body });
  narrator.check('the event is matched', answer.data.matched, true);
}

/** What a scenario promises about a settlement, in the form of the list. */
const resultOf = ({ timeline, exceptions, failure }: Settlement) => ({
  path: timeline.map(({ status }) => status),
  exceptions: exceptions.map(({ type }) => type),
  failure_code: failure?.code ?? null,
});
