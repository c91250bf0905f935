/** The main job: from nothing to a settled settlement with a certificate that verifies. */
import { randomUUID } from 'node:crypto';
import type { Narrator } from './narrator.ts';

const WAIT_SECONDS = 20;
const CHANGES_MAX = 10;

export async function playFirstSettlement(narrator: Narrator): Promise<void> {
  const { apiKey } = await signUp(narrator);
  const recipientId = await registerRecipient(narrator, apiKey);
  await estimate(narrator, apiKey);
  const settlementId = await settle(narrator, apiKey, recipientId);
  const certId = await waitUntilSettled(narrator, apiKey, settlementId);
  await readCertificate(narrator, apiKey, settlementId, certId);
}

/** A new organization with its first key. */
export async function signUp({ say, call }: Narrator): Promise<{ apiKey: string; orgId: string }> {
  say('An organization signs up; its first key is shown once.');
  const { json } = await call({
    method: 'POST',
    path: '/v1/orgs',
    body: { name: 'Acme Remittances', country: 'US', contact_email: 'dev@acme.example' },
    expectStatus: 201,
  });
  return { apiKey: String(json['api_key']), orgId: String(json['org_id']) };
}

async function registerRecipient({ say, call, promise }: Narrator, apiKey: string): Promise<string> {
  say('It registers a recipient in Jamaica; of the account number only the last digits come back.');
  const { json, text } = await call({
    method: 'POST',
    path: '/v1/recipients',
    apiKey,
    body: {
      kind: 'contractor',
      entity_type: 'individual',
      name: 'Marcia Brown',
      country: 'JM',
      bank_details: {
        bank_name: 'Example Bank of Jamaica',
        account_number: '004512378',
        account_type: 'savings',
        currency: 'JMD',
      },
    },
    expectStatus: 201,
  });
  promise('the account number is nowhere in the answer', text.includes('004512378'), false);
  return String(json['recipient_id']);
}

async function estimate({ say, call, promise }: Narrator, apiKey: string): Promise<void> {
  say('It asks what a card settlement of 250 US dollars would give; the estimate is for display only.');
  const body = { corridor: 'US-JM', amount: '250.00', payment_method: 'card', payout_rail: 'bank_transfer' };
  const { json } = await call({ method: 'POST', path: '/v2/estimate', apiKey, body, expectStatus: 200 });
  promise(
    '250.00 USD less 9.43 in fees become 37829.63 JMD',
    [json['total_fees'], json['destination_amount']],
    ['9.43', '37829.63'],
  );
  promise('an estimate is never executable', json['executable'], false);
}

async function settle({ say, call, promise }: Narrator, apiKey: string, recipientId: string): Promise<string> {
  say('It starts the settlement with a key of its own; the answer comes once the record is committed.');
  const headers = { 'Idempotency-Key': randomUUID() };
  const body = {
    corridor: 'US-JM',
    amount: '250.00',
    recipient_id: recipientId,
    payment_method: 'card',
    payout_rail: 'bank_transfer',
    card_token: 'tok_visa',
    purpose: 'family_support',
  };
  const settlement = { method: 'POST', path: '/v2/settle', apiKey, headers } as const;
  const first = await call({ ...settlement, body, expectStatus: 202 });
  promise('it is accepted, as a simulation', [first.json['status'], first.json['simulation']], ['accepted', true]);

  say('The same key with the same bytes gives the same answer, however often.');
  const again = await call({ ...settlement, body, expectStatus: 202 });
  promise(
    'the answer is the same to the byte, and says that it is a replay',
    [again.text, again.headers.get('idempotency-replayed')],
    [first.text, 'true'],
  );

  say('The same key with another amount is refused, naming what differs.');
  const other = await call({ ...settlement, body: { ...body, amount: '300.00' }, expectStatus: 409 });
  promise(
    'the conflict names the field',
    [other.json['code'], other.json['mismatch']],
    ['idempotency_key_reused', ['amount']],
  );
  return String(first.json['settlement_id']);
}

async function waitUntilSettled(
  { say, call, promise }: Narrator,
  apiKey: string,
  settlementId: string,
): Promise<string> {
  say('It waits for each change while the sandbox card processor and payout rail do their part.');
  for (let change = 0; change < CHANGES_MAX; change += 1) {
    const { json } = await call({
      method: 'GET',
      path: `/v2/settle/${settlementId}`,
      apiKey,
      headers: { Prefer: `wait=${WAIT_SECONDS}` },
      expectStatus: 200,
    });
    if (json['certificate_id'] === null && json['failure'] === null) continue;
    const timeline = Array.isArray(json['timeline'])
      ? json['timeline'].map((entry: { status: string }) => entry.status)
      : [];
    promise('it went through every state once', timeline, [
      'accepted',
      'awaiting_funds',
      'funded',
      'paying_out',
      'settled',
    ]);
    promise('all the money arrived', json['amount_received'], '250.00');
    return String(json['certificate_id']);
  }
  throw new Error(`The settlement ${settlementId} did not settle.`);
}

async function readCertificate(
  { say, call, promise }: Narrator,
  apiKey: string,
  settlementId: string,
  certId: string,
): Promise<void> {
  say('It downloads the certificate and has it verified; nothing anchors it, and it says so.');
  const certificate = await call({
    method: 'GET',
    path: `/v1/caribbean/certificate/${certId}`,
    apiKey,
    expectStatus: 200,
  });
  promise(
    'the certificate is signed',
    /^[\w-]+\.\.[\w-]+$/.test(certificate.headers.get('x-certificate-signature') ?? ''),
    true,
  );
  const { json } = await call({
    method: 'GET',
    path: `/v1/caribbean/certificate/${certId}/verify?settlement_id=${settlementId}`,
    apiKey,
    expectStatus: 200,
  });
  promise('it is valid', json['valid'], true);
  promise('it is unanchored', json['anchor'], { status: 'unanchored' });
}
