/** Plays one entry of `GET /v2/test-helpers/scenarios` and compares the result with what the list says. */
import { createHmac, randomUUID } from 'node:crypto';
import type { Scenario, ScenarioStep } from '../../domain/sandbox/scenario.ts';
import type { ApiRequest } from '../partner/client.ts';
import type { Partner } from '../partner/partner.ts';
import type { Narrator } from './narrator.ts';

export type ScenarioDeps = {
  readonly narrator: Pick<Narrator, 'say' | 'call' | 'check'>;
  readonly partner: Partner;
  /** Decides a review, as an operator does. */
  readonly resolveReview: (settlementId: string, outcome: 'paid' | 'refused') => Promise<void>;
  readonly bankledgerSecret: string;
};

/** The settlement that a scenario is about. */
type Subject = { readonly settlementId: string; readonly recipientId: string };

/** @throws Error when an answer, the path of states, an exception or the failure differs from the scenario */
export async function playScenario(deps: ScenarioDeps, scenario: Scenario): Promise<void> {
  const { narrator, partner } = deps;
  narrator.say(`${scenario.name}: ${scenario.summary}`);
  const subject = await startSettlement(partner, scenario);
  for (const step of scenario.steps) {
    const { when, received } = step;
    await partner.waitForSettlement(
      subject.settlementId,
      received === undefined ? when : `${when} with ${received} received`,
      (settlement) =>
        settlement['status'] === when && (received === undefined || settlement['amount_received'] === received),
    );
    await doStep(deps, subject, step);
  }
  const { path, exceptions, failure_code } = scenario;
  const expected = { path, exceptions, failure_code };
  const { json } = await partner.waitForSettlement(
    subject.settlementId,
    `as the list says (${JSON.stringify(expected)})`,
    (settlement) => JSON.stringify(resultOf(settlement)) === JSON.stringify(expected),
  );
  narrator.check(`its states were ${path.join(' → ')}`, resultOf(json), expected);
}

async function startSettlement(partner: Partner, { given }: Scenario): Promise<Subject> {
  const { recipient_name: name, public_token, ...settlement } = given;
  const recipientId = await partner.createRecipient({ name });
  const banklink = public_token === undefined ? {} : await linkBankAccount(partner, public_token);
  const body = { ...settlement, recipient_id: recipientId, ...banklink };
  return { settlementId: (await partner.settle(body)).settlement_id, recipientId };
}

async function linkBankAccount(partner: Partner, publicToken: string): Promise<{ banklink_account_token: string }> {
  const body = { public_token: publicToken };
  const { json } = await partner.call({ method: 'POST', path: '/v2/banklink/exchange', body, expectStatus: 200 });
  return { banklink_account_token: String(json['access_token']) };
}

async function doStep(deps: ScenarioDeps, subject: Subject, step: ScenarioStep): Promise<void> {
  const { settlementId } = subject;
  const post = (path: string, expectStatus: number, body?: ApiRequest['body']) =>
    deps.partner.call({ method: 'POST', path, expectStatus, body });
  const helper = `/v2/test-helpers/settlements/${settlementId}`;
  switch (step.do) {
    case 'send_event': {
      const amount = step.amount === undefined ? {} : { amount: step.amount };
      await post(`${helper}/events`, 202, { event: step.event, ...amount });
      return;
    }
    case 'advance_clock':
      await post(`${helper}/advance`, 202, step.by === undefined ? undefined : { by: step.by });
      return;
    case 'cancel':
      await post(`/v2/settle/${settlementId}/cancel`, 200);
      return;
    case 'decide_verification':
      return await decideVerification(deps.partner, subject, step.decision);
    case 'resolve_review':
      return await deps.resolveReview(settlementId, step.outcome);
    case 'post_bankledger_event':
      return await postBankledgerEvent(deps, subject, step);
  }
}

async function decideVerification(
  { call, orgId }: Partner,
  { recipientId }: Subject,
  status: 'verified' | 'rejected',
): Promise<void> {
  const { json } = await call({
    method: 'POST',
    path: '/v1/kyc/verify',
    body: { recipient_id: recipientId, org_id: orgId },
    expectStatus: 201,
  });
  const reason = status === 'rejected' ? { rejection_reason: 'The document is not readable.' } : {};
  await call({
    method: 'POST',
    path: `/v1/kyc/${json['verification_id']}/complete`,
    body: { status, ...reason },
    expectStatus: 200,
  });
}

async function postBankledgerEvent(
  { narrator, bankledgerSecret }: ScenarioDeps,
  { settlementId }: Subject,
  step: ScenarioStep & { do: 'post_bankledger_event' },
): Promise<void> {
  const { event, amount_reconciled, currency } = step;
  const data = {
    id: 'ep_1',
    object: 'expected_payment',
    live_mode: false,
    status: event,
    amount_reconciled,
    currency,
    type: 'wire',
    metadata: { settlement_id: settlementId },
  };
  const body = { id: randomUUID(), event, data };
  const signature = createHmac('sha256', bankledgerSecret).update(JSON.stringify(body)).digest('hex');
  const headers = { 'X-Signature': signature };
  const path = '/v2/webhooks/bankledger';
  const { json } = await narrator.call({ method: 'POST', path, headers, body, expectStatus: 200 });
  narrator.check('the event is matched', json['matched'], true);
}

type Entry = Readonly<Record<string, unknown>>;

/** What a scenario promises about a settlement, in the form of the list. */
function resultOf(settlement: Entry) {
  const fieldOfEach = (name: string, field: string) => {
    const entries = settlement[name];
    return Array.isArray(entries) ? entries.map((entry: Entry) => entry[field]) : [];
  };
  const failure = settlement['failure'];
  const failure_code = typeof failure === 'object' && failure !== null && 'code' in failure ? failure.code : null;
  return { path: fieldOfEach('timeline', 'status'), exceptions: fieldOfEach('exceptions', 'type'), failure_code };
}
