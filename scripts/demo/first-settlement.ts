/** The main story: a partner signs up, settles, and verifies the certificate of the settlement. */
import { randomUUID } from 'node:crypto';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { cardSettlementBody, type Partner, recipientBody, signUp } from '../partner/partner.ts';
import type { Narrator } from './narrator.ts';

const WAIT_SECONDS = 20;
const READS_MAX = 10;

/** @param temporalUi where Temporal UI is; undefined: the story does not link to it */
export async function playFirstSettlement(narrator: Narrator, temporalUi?: string): Promise<void> {
  const partner = await introduce(narrator);
  const recipientId = await registerRecipient(narrator, partner);
  await estimate(narrator, partner);
  const settlementId = await settle(narrator, partner, recipientId);
  const run = temporalUi === undefined ? undefined : runAddress(temporalUi, settlementId);
  if (run !== undefined) {
    narrator.say('The settlement has a workflow of its own in Temporal.', 'Open its run, and see it go on:');
    narrator.show(run);
  }
  const certId = await waitUntilSettled(narrator, partner, settlementId);
  await readCertificate(narrator, partner, settlementId, certId);
  if (run === undefined) return;
  narrator.say(
    'Look at the run again: it has completed.',
    'Its timeline has the wait for the money and each activity, and no name, account number or key.',
  );
  narrator.show(run);
}

const runAddress = (temporalUi: string, settlementId: string): string =>
  `${temporalUi}/namespaces/default/workflows/${encodeURIComponent(settlementWorkflowId(settlementId))}`;

/** A new organization with its first key. */
export async function introduce({ say, call }: Narrator): Promise<Partner> {
  say(
    'An organization signs up. Its first key is shown once.',
    'Only a hash of the key is stored, so nobody can show it again: a lost key is replaced.',
  );
  return await signUp(call);
}

async function registerRecipient({ say, check }: Narrator, partner: Partner): Promise<string> {
  say(
    'It registers a recipient in Jamaica. Answers show only the last digits of the account number.',
    'The number is stored encrypted. No log, event or workflow history contains it.',
  );
  const body = recipientBody();
  const { json, text } = await partner.call({ method: 'POST', path: '/v1/recipients', body, expectStatus: 201 });
  check('the answer does not contain the account number', text.includes(body.bank_details.account_number), false);
  return String(json['recipient_id']);
}

async function estimate({ say, check }: Narrator, partner: Partner): Promise<void> {
  say(
    'It asks for the price of a card settlement of 250 US dollars. The estimate is for display only.',
    'The rate is a fixture. A settlement has the rate and the fees of the moment in which it is accepted.',
  );
  const body = { corridor: 'US-JM', amount: '250.00', payment_method: 'card', payout_rail: 'bank_transfer' };
  const { json } = await partner.call({ method: 'POST', path: '/v2/estimate', body, expectStatus: 200 });
  check(
    '250.00 USD less 9.43 USD of fees is 37829.63 JMD',
    [json['total_fees'], json['destination_amount']],
    ['9.43', '37829.63'],
  );
  check('an estimate is never executable', json['executable'], false);
}

async function settle({ say, check }: Narrator, partner: Partner, recipientId: string): Promise<string> {
  say(
    'It starts the settlement with an idempotency key. The answer comes when the settlement is committed.',
    'From here on it completes exactly once, even if every process is killed now. That is what 202 says.',
  );
  const body = cardSettlementBody(recipientId, { purpose: 'family_support' });
  const request = { method: 'POST', path: '/v2/settle', idempotencyKey: randomUUID() } as const;
  const first = await partner.call({ ...request, body, expectStatus: 202 });
  check('it is accepted, as a simulation', [first.json['status'], first.json['simulation']], ['accepted', true]);

  say(
    'It sends the same body with the same key again. The answer is the same.',
    'A partner whose connection broke does this: it cannot know whether the first request arrived.',
  );
  const again = await partner.call({ ...request, body, expectStatus: 202 });
  check(
    'every byte of the answer is the same, and a header marks it as a replay',
    [again.text, again.headers['idempotency-replayed']],
    [first.text, 'true'],
  );

  say(
    'It sends another amount with the same key. The API refuses it and names the field that differs.',
    'One key is one command, for ever: a fault in a program cannot pay twice.',
  );
  const other = await partner.call({ ...request, body: { ...body, amount: '300.00' }, expectStatus: 409 });
  check(
    'the conflict names the field',
    [other.json['code'], other.json['mismatch']],
    ['idempotency_key_reused', ['amount']],
  );
  return String(first.json['settlement_id']);
}

async function waitUntilSettled({ say, check }: Narrator, partner: Partner, settlementId: string): Promise<string> {
  say(
    "It waits for each change. Meanwhile the sandbox's card processor and payout rail do their part.",
    'The processor posts signed events to the API, as a real one would. `Prefer: wait` holds a read until a change.',
  );
  for (let read = 0; read < READS_MAX; read += 1) {
    const { json } = await partner.readSettlement(settlementId, WAIT_SECONDS);
    if (json['certificate_id'] === null && json['failure'] === null) continue;
    const timeline = Array.isArray(json['timeline'])
      ? json['timeline'].map((entry: { status: string }) => entry.status)
      : [];
    check('it passed through each of these states once', timeline, [
      'accepted',
      'awaiting_funds',
      'funded',
      'paying_out',
      'settled',
    ]);
    check('all the money arrived', json['amount_received'], '250.00');
    return String(json['certificate_id']);
  }
  throw new Error(`The settlement ${settlementId} did not settle.`);
}

async function readCertificate(
  { say, check }: Narrator,
  partner: Partner,
  settlementId: string,
  certId: string,
): Promise<void> {
  say(
    'It downloads the certificate and asks the API to verify it. The certificate says that nothing anchors it.',
    'It proves what happened without the service: `npm run verify-certificate` checks it offline.',
  );
  const path = `/v1/caribbean/certificate/${certId}`;
  const certificate = await partner.call({ method: 'GET', path, expectStatus: 200 });
  const signature = String(certificate.headers['x-certificate-signature']);
  check('the certificate is signed', /^[\w-]+\.\.[\w-]+$/.test(signature), true);
  const { json } = await partner.call({
    method: 'GET',
    path: `${path}/verify?settlement_id=${settlementId}`,
    expectStatus: 200,
  });
  check('it is valid', json['valid'], true);
  check('it is unanchored', json['anchor'], { status: 'unanchored' });
}
