/** Plays one entry of `GET /v2/test-helpers/scenarios` and compares where it leads with what the list says. */
import { createHmac, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Scenario, ScenarioStep } from '../../domain/sandbox/scenario.ts';
import type { Narrator, Reply } from './narrator.ts';

/** What a scenario needs beyond the API: the operator's desk, and the bank ledger's secret. */
export type Backstage = {
  readonly resolveReview: (settlementId: string, outcome: 'paid' | 'refused') => Promise<void>;
  readonly bankledgerSecret: string;
};

/** The caller whose settlement it is. */
export type Partner = { readonly apiKey: string; readonly orgId: string };

type Stage = Backstage &
  Partner & { readonly narrator: Narrator; readonly settlementId: string; readonly recipientId: string };

const WAIT_SECONDS = 2;
const PAUSE_MS = 250;
const TIME_MAX_MS = 30_000;

/** @throws Error when an answer, the path of states, an exception or the failure differs from the scenario */
export async function playScenario(
  narrator: Narrator,
  backstage: Backstage,
  partner: Partner,
  scenario: Scenario,
): Promise<void> {
  narrator.say(`${scenario.name}: ${scenario.summary}`);
  const stage = await begin(narrator, backstage, partner, scenario);
  for (const step of scenario.steps) {
    const { when, received } = step;
    await readUntil(
      stage,
      `it is ${when}`,
      ({ json }) => json['status'] === when && (received === undefined || json['amount_received'] === received),
    );
    await take(stage, step);
  }
  const { path, exceptions, failure_code } = scenario;
  const expected = { path, exceptions, failure_code };
  const end = await readUntil(
    stage,
    'it is where the list says',
    (reply) => JSON.stringify(shown(reply)) === JSON.stringify(expected),
  );
  narrator.promise(`it went ${path.join(' → ')}`, shown(end), expected);
}

async function begin(
  narrator: Narrator,
  backstage: Backstage,
  { apiKey, orgId }: Partner,
  { given }: Scenario,
): Promise<Stage> {
  const { recipient_name: name, public_token, ...request } = given;
  const bank_details = { bank_name: 'Example Bank of Jamaica', account_number: '004512378', currency: 'JMD' };
  const recipient = { kind: 'contractor', entity_type: 'individual', name, country: 'JM', bank_details };
  const { json: registered } = await narrator.call({
    method: 'POST',
    path: '/v1/recipients',
    apiKey,
    body: recipient,
    expectStatus: 201,
  });
  const linked =
    public_token === undefined
      ? undefined
      : await narrator.call({
          method: 'POST',
          path: '/v2/banklink/exchange',
          apiKey,
          body: { public_token },
          expectStatus: 200,
        });
  const body = {
    ...request,
    recipient_id: registered['recipient_id'],
    ...(linked ? { banklink_account_token: linked.json['access_token'] } : {}),
  };
  const headers = { 'Idempotency-Key': randomUUID() };
  const { json } = await narrator.call({
    method: 'POST',
    path: '/v2/settle',
    apiKey,
    headers,
    body,
    expectStatus: 202,
  });
  return {
    ...backstage,
    apiKey,
    orgId,
    narrator,
    settlementId: String(json['settlement_id']),
    recipientId: String(registered['recipient_id']),
  };
}

/** Reads, waiting for changes, until the settlement is as wanted; gives back what was read last otherwise. */
async function readUntil(
  { narrator, apiKey, settlementId }: Stage,
  wanted: string,
  isWanted: (reply: Reply) => boolean,
): Promise<Reply> {
  const read = (headers: Record<string, string>) =>
    narrator.call({ method: 'GET', path: `/v2/settle/${settlementId}`, apiKey, headers, expectStatus: 200 });
  const end = Date.now() + TIME_MAX_MS;
  let reply = await read({});
  while (!isWanted(reply)) {
    if (Date.now() > end)
      throw new Error(`${settlementId} did not come so far that ${wanted}: ${JSON.stringify(shown(reply))}.`);
    // A read does not wait for what is no change of status, an exception or a part of the money.
    await delay(PAUSE_MS);
    reply = await read({ Prefer: `wait=${WAIT_SECONDS}` });
  }
  return reply;
}

async function take(stage: Stage, step: ScenarioStep): Promise<void> {
  const { narrator, apiKey, settlementId } = stage;
  const post = (path: string, expectStatus: number, body?: Record<string, unknown>) =>
    narrator.call({ method: 'POST', path, apiKey, expectStatus, ...(body === undefined ? {} : { body }) });
  const helper = `/v2/test-helpers/settlements/${settlementId}`;
  switch (step.do) {
    case 'send_event':
      await post(`${helper}/events`, 202, {
        event: step.event,
        ...(step.amount === undefined ? {} : { amount: step.amount }),
      });
      return;
    case 'advance_clock':
      await post(`${helper}/advance`, 202, step.by === undefined ? undefined : { by: step.by });
      return;
    case 'cancel':
      await post(`/v2/settle/${settlementId}/cancel`, 200);
      return;
    case 'decide_verification':
      return await decideVerification(stage, step.decision);
    case 'resolve_review':
      return await stage.resolveReview(settlementId, step.outcome);
    case 'post_bankledger_event':
      return await postBankledgerEvent(stage, step);
  }
}

async function decideVerification(
  { narrator, apiKey, orgId, recipientId }: Stage,
  status: 'verified' | 'rejected',
): Promise<void> {
  const opened = await narrator.call({
    method: 'POST',
    path: '/v1/kyc/verify',
    apiKey,
    body: { recipient_id: recipientId, org_id: orgId },
    expectStatus: 201,
  });
  const reason = status === 'rejected' ? { rejection_reason: 'The document is not readable.' } : {};
  await narrator.call({
    method: 'POST',
    path: `/v1/kyc/${opened.json['verification_id']}/complete`,
    apiKey,
    body: { status, ...reason },
    expectStatus: 200,
  });
}

async function postBankledgerEvent(
  { narrator, settlementId, bankledgerSecret }: Stage,
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
  const { json } = await narrator.call({
    method: 'POST',
    path: '/v2/webhooks/bankledger',
    headers: { 'X-Signature': signature },
    body,
    expectStatus: 200,
  });
  narrator.promise('the event is matched', json['matched'], true);
}

type Entry = Readonly<Record<string, unknown>>;

const shown = ({ json }: Reply) => {
  const of = (name: string, field: string) =>
    Array.isArray(json[name]) ? json[name].map((entry: Entry) => entry[field]) : [];
  const failure = json['failure'];
  const failure_code = typeof failure === 'object' && failure !== null && 'code' in failure ? failure.code : null;
  return { path: of('timeline', 'status'), exceptions: of('exceptions', 'type'), failure_code };
};
