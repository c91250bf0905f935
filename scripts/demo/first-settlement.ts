/** The main story: a partner signs up, settles, and verifies the certificate of the settlement. */
import { isApiError } from '../../clients/typescript/index.ts';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { cardSettlementBody, type Partner, recipientBody, signUp } from '../sandbox/partner.ts';
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
export async function introduce({ say, connection }: Narrator): Promise<Partner> {
  say(
    'An organization signs up. Only this answer shows its first key.',
    'Only a hash of the key is stored, so nobody can show it again: a lost key is replaced.',
  );
  return await signUp(connection);
}

async function registerRecipient({ say, check, answered }: Narrator, { client }: Partner): Promise<string> {
  say(
    'It registers a recipient in Jamaica. Answers show only the last digits of the account number.',
    'The number is stored encrypted. No log, event or workflow history contains it.',
  );
  const body = recipientBody();
  const { data } = await client.request('POST', '/v1/recipients', { body });
  check('the answer does not contain the account number', answered().includes(body.bank_details.account_number), false);
  return data.recipient_id;
}

async function estimate({ say, check }: Narrator, { client }: Partner): Promise<void> {
  say(
    'It asks for the price of a card settlement of 250 US dollars. The estimate is for display only.',
    'The rate is a fixture. A settlement has the rate and the fees of the moment in which it is accepted.',
  );
  const { total_fees, destination_amount, executable } = await client.estimates.create({
    corridor: 'US-JM',
    amount: '250.00',
    payment_method: 'card',
    payout_rail: 'bank_transfer',
  });
  check('250.00 USD less 9.43 USD of fees is 37829.63 JMD', [total_fees, destination_amount], ['9.43', '37829.63']);
  check('an estimate is never executable', executable, false);
}

async function settle({ say, check, answered }: Narrator, { client }: Partner, recipientId: string): Promise<string> {
  say(
    'It starts the settlement with an idempotency key. The answer comes when the settlement is committed.',
    'From here on it completes exactly once, even if every process is killed now. That is what 202 says.',
  );
  const body = cardSettlementBody(recipientId, { purpose: 'family_support' });
  const intent = client.settlements.prepare(body);
  const { status: httpStatus, data: accepted } = await client.send(intent);
  const { status, simulation, settlement_id: settlementId } = accepted;
  check('it is accepted, as a simulation', [httpStatus, status, simulation], [202, 'accepted', true]);
  const first = answered();

  say(
    'It sends the same body with the same key again. The answer is the same.',
    'A partner whose connection broke does this: it cannot know whether the first request arrived.',
  );
  const { headers } = await client.send(intent);
  check(
    'every byte of the answer is the same, and a header marks it as a replay',
    [answered(), headers.get('Idempotency-Replayed')],
    [first, 'true'],
  );

  say(
    'It sends another amount with the same key. The API refuses it and names the field that differs.',
    'One key is one command, permanently: a fault in a program cannot pay twice.',
  );
  const other = { ...body, amount: '300.00' };
  const refused = await client.settlements
    .create(other, { idempotencyKey: intent.idempotency_key })
    .catch((error: unknown) => error);
  const mismatch = isApiError(refused, 'idempotency_key_reused') ? refused.problem.mismatch : refused;
  check('the conflict names the field', mismatch, ['amount']);
  return settlementId;
}

async function waitUntilSettled({ say, check }: Narrator, { client }: Partner, settlementId: string): Promise<string> {
  say(
    "It waits for each change. Meanwhile the sandbox's card processor and payout rail do their part.",
    'The processor posts signed events to the API, as a real one would. `Prefer: wait` holds a read until a change.',
  );
  for (let read = 0; read < READS_MAX; read += 1) {
    const { data } = await client.request('GET', '/v2/settle/{settlement_id}', {
      path: { settlement_id: settlementId },
      headers: { Prefer: `wait=${WAIT_SECONDS}` },
      attemptTimeoutMs: 2 * WAIT_SECONDS * 1_000,
    });
    if (data.certificate_id === null && data.failure === null) continue;
    const passed = data.timeline.map(({ status }) => status);
    const states = ['accepted', 'awaiting_funds', 'funded', 'paying_out', 'settled'];
    check('it passed through each of these states once', passed, states);
    check('all the money arrived', data.amount_received, '250.00');
    return data.certificate_id ?? '';
  }
  throw new Error(`The settlement ${settlementId} did not settle.`);
}

async function readCertificate(
  { say, check }: Narrator,
  { client }: Partner,
  settlementId: string,
  certId: string,
): Promise<void> {
  say(
    'It downloads the certificate and asks the API to verify it. The certificate says that nothing anchors it.',
    'It proves what happened without the service: `npm run verify-certificate` checks it offline.',
  );
  const { signature } = await client.certificates.download(certId);
  check('the certificate is signed', /^[\w-]+\.\.[\w-]+$/.test(signature), true);
  const { valid, anchor } = await client.certificates.verify(certId, settlementId);
  check('it is valid', valid, true);
  check('it is unanchored', anchor, { status: 'unanchored' });
}
