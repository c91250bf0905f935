import { inspect } from 'node:util';
import { describe, expect } from 'vitest';
import {
  certificates,
  createClient,
  createConsumerClient,
  type Intent,
  isApiError,
  type Settlement,
  SettlementError,
  ValidationFailed,
  WaitTimeout,
} from '../../../clients/typescript/index.ts';
import { FILE, withStack } from '../../support/fixture.ts';

const RECIPIENT = {
  kind: 'contractor',
  entity_type: 'individual',
  name: 'Marcia Brown',
  country: 'JM',
  bank_details: { bank_name: 'Example Bank of Jamaica', account_number: '004512378', currency: 'JMD' },
} as const;

const cardOf = (recipientId: string) =>
  ({
    corridor: 'US-JM',
    amount: '250.00',
    recipient_id: recipientId,
    payment_method: 'card',
    payout_rail: 'bank_transfer',
    card_token: 'tok_visa',
  }) as const;

const test = withStack()
  .extend('client', FILE, ({ stack, partner }) => createClient({ baseUrl: stack.baseUrl, apiKey: partner.apiKey }))
  .extend('recipientId', FILE, async ({ client }) => (await client.recipients.create(RECIPIENT)).recipient_id)
  .extend('settled', FILE, async ({ client, recipientId }): Promise<Settlement> => {
    const { settlement_id } = await client.settlements.create(cardOf(recipientId));
    return await client.settlements.wait(settlement_id);
  });

/** The error of a call that must fail. */
async function errorOf(call: Promise<unknown>): Promise<unknown> {
  const outcome = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (outcome === undefined) throw new Error('the call did not fail');
  return outcome;
}

describe('a settlement', () => {
  test('is awaited to its end', async ({ settled }) => {
    expect(settled).toMatchObject({ status: 'settled', amount: '250.00', destination_amount: '37829.63' });
  });

  test('is awaited in a state on its way, and to a test of its own', async ({ client, recipientId }) => {
    const { settlement_id: id } = await client.settlements.create({
      ...cardOf(recipientId),
      card_token: 'tok_manual',
    });
    expect((await client.settlements.wait(id, { until: ['awaiting_funds'] })).status).toBe('awaiting_funds');
    await client.sandbox.sendEvent(id, { event: 'collection_partial', amount: '100.00' });
    const part = await client.settlements.wait(id, { until: ({ amount_received }) => amount_received === '100.00' });
    expect(part.status).toBe('awaiting_funds');
    const late = await errorOf(client.settlements.wait(id, { timeoutMs: 50 }));
    expect(late).toBeInstanceOf(WaitTimeout);
    expect(late).toMatchObject({ latest: { settlement_id: id, status: 'awaiting_funds' } });
    expect((await client.settlements.cancel(id)).status).toBe('canceled');
    expect((await client.settlements.cancel(id)).status).toBe('canceled');
  });

  test('is created once by an intent that was stored as JSON', async ({ client, recipientId }) => {
    const stored = JSON.stringify(client.settlements.prepare({ ...cardOf(recipientId), reference: 'INV-1' }));
    const ids = await Promise.all(
      [1, 2, 3].map(async () => (await client.settlements.create(JSON.parse(stored))).settlement_id),
    );
    expect(new Set(ids).size).toBe(1);
    const all: string[] = [];
    for await (const { settlement_id } of client.settlements.list({ reference: 'INV-1' })) all.push(settlement_id);
    expect(all).toEqual([ids[0]]);
    await expect(client.recipients.create(JSON.parse(stored))).rejects.toThrow(TypeError);
  });
});

describe('a refusal', () => {
  test('has its code, and the members of the code', async ({ client, settled }) => {
    const refused = await errorOf(client.settlements.cancel(settled.settlement_id));
    if (!isApiError(refused, 'state_conflict')) throw refused;
    expect(refused.problem.current_state).toBe('settled');
    expect(refused.requestId).toMatch(/^[0-9a-f-]{36}$/);
    expect(isApiError(refused)).toBe(true);
    expect(isApiError(refused, 'not_found', 'last_full_key')).toBe(false);
  });

  test('lists every fault of an invalid request', async ({ client, recipientId }) => {
    const refused = await errorOf(
      client.settlements.create({ ...cardOf(recipientId), amount: '1e3', card_token: null }),
    );
    if (!(refused instanceof ValidationFailed)) throw refused;
    expect(refused.faults.map(({ loc }) => loc)).toContainEqual(['body', 'amount']);
  });

  test('carries the intent, which no log of the error shows', async ({ stack, recipientId, partner }) => {
    const client = createClient({ baseUrl: stack.baseUrl, apiKey: partner.apiKey });
    const refused = await errorOf(
      client.settlements.create({ ...cardOf(recipientId), card_token: 'tok_secret_42', amount: '0' }),
    );
    if (!(refused instanceof SettlementError)) throw refused;
    expect(refused.intent?.body).toContain('tok_secret_42');
    const logged = inspect(refused, { depth: 10 }) + JSON.stringify(refused) + inspect(client, { depth: 10 });
    expect(logged).not.toContain('tok_secret_42');
    expect(logged).not.toContain(partner.apiKey);
    const repeated = await errorOf(client.send(refused.intent as Intent));
    expect(repeated).toBeInstanceOf(ValidationFailed);
  });
});

describe('a list', () => {
  test('is read over all its pages, with its filters', async ({ client, recipientId }) => {
    const batch = 'pages';
    const created = await Promise.all(
      Array.from({ length: 5 }, async (_, index) => {
        const fields = { ...cardOf(recipientId), reference: `R ${index}&`, metadata: { batch } };
        return (await client.settlements.create(fields)).settlement_id;
      }),
    );
    const filter = { metadata: { batch }, corridor: 'US-JM', limit: 2 } as const;
    const found: string[] = [];
    for await (const { settlement_id } of client.settlements.list(filter)) found.push(settlement_id);
    expect(new Set(found)).toEqual(new Set(created));
    const sizes: unknown[] = [];
    for await (const { items, totalCount } of client.settlements.list(filter).pages())
      sizes.push([items.length, totalCount]);
    expect(sizes).toEqual([
      [2, 5],
      [2, 5],
      [1, 5],
    ]);
    expect(await client.settlements.list(filter).first(3)).toHaveLength(3);
    const none = client.settlements.list({ ...filter, status: ['rejected', 'expired'] });
    expect(await none.first(1)).toEqual([]);
  });
});

describe('a certificate', () => {
  test('is valid offline, as the certificate of its settlement alone', async ({ client, settled }) => {
    const certId = settled.certificate_id ?? '';
    const [download, keys] = await Promise.all([client.certificates.download(certId), client.certificates.keys()]);
    const settlementId = settled.settlement_id;
    expect(certificates.verify(download, keys, { certId, settlementId })).toMatchObject({
      valid: true,
      certId,
      certificate: { settlement_id: settlementId },
    });
    const other = certificates.verify(download, keys, { settlementId: 'stl_other' });
    expect(Object.entries(other.checks).filter(([, passed]) => !passed)).toEqual([['settlement_matches', false]]);
    expect(other.valid).toBe(false);
  });

  test('is valid offline as one signed file', async ({ client, settled }) => {
    const certId = settled.certificate_id ?? '';
    const [signed, keys] = await Promise.all([client.certificates.downloadSigned(certId), client.certificates.keys()]);
    expect(certificates.verify(signed, keys, { certId, settlementId: settled.settlement_id }).valid).toBe(true);
  });
});

describe('each group of methods', () => {
  test('answers a partner', async ({ client, partner, recipientId, settled }) => {
    const { orgId } = partner;
    expect((await client.organizations.get(orgId)).name).toBe('Acme');
    const key = await client.apiKeys.create(orgId, { name: 'second', scope: 'read' });
    const rotated = await client.apiKeys.rotate(key.key_id);
    expect((await client.apiKeys.revoke(rotated.key_id)).status).toBe('revoked');
    expect(await client.apiKeys.list(orgId).first(10)).toHaveLength(3);

    const signers = [{ address: '0x52908400098527886e0f7030069857d2e4169ee7' }];
    const wallet = await client.wallets.create({ name: 'Main', signers, threshold: 1 });
    expect(await client.wallets.get(wallet.wallet_id)).toEqual(wallet);
    expect(await client.wallets.list().first(2)).toEqual([wallet]);

    expect((await client.recipients.update(recipientId, { email: 'm@example.com' })).email).toBe('m@example.com');
    expect((await client.recipients.get(recipientId)).is_active).toBe(true);
    const other = await client.recipients.create({ ...RECIPIENT, name: 'Other' });
    expect((await client.recipients.deactivate(other.recipient_id)).is_active).toBe(false);
    expect(await client.recipients.list({ is_active: false }).first(2)).toHaveLength(1);
    const verification = await client.verifications.start({ recipient_id: recipientId, org_id: orgId });
    const decision = { status: 'rejected', rejection_reason: 'The document is not readable.' } as const;
    await client.verifications.complete(verification.verification_id, decision);
    expect((await client.verifications.get(verification.verification_id)).status).toBe('rejected');
    expect((await client.verifications.status(recipientId)).verification_status).toBe('rejected');

    const price = { corridor: 'US-JM', amount: '100', payment_method: 'card' } as const;
    expect((await client.estimates.create(price)).amount).toBe('100.00');
    expect((await client.estimates.fees(price)).total_fees).toBe('3.95');
    const { sandbox_public_token: public_token } = await client.banklink.createLinkToken();
    expect((await client.banklink.exchange({ public_token })).simulation).toBe(true);
    expect((await client.caribbean.corridors()).corridors).toHaveLength(14);
    expect((await client.caribbean.estimate({ corridor: 'US-JM', amount: '100' })).input_fee).toBe('0.00');
    expect((await client.service.capabilities()).services).toHaveLength(25);
    expect((await client.service.launchGates()).open).toBe(false);
    expect((await client.service.paymentMethods()).methods).toHaveLength(4);
    expect((await client.sandbox.scenarios()).length).toBeGreaterThan(10);
    const certId = settled.certificate_id ?? '';
    expect((await client.certificates.verify(certId, settled.settlement_id)).valid).toBe(true);
  });

  test('answers about events', async ({ client, settled }) => {
    const events = await client.events.list({ object_id: settled.settlement_id }).first(20);
    expect(events.map(({ type }) => type)).toContain('settlement.settled');
    const [event] = events;
    expect(await client.events.get(event?.id ?? '')).toEqual(event);
    const fields = { url: 'https://hooks.example/', event_types: ['settlement.settled'] } as const;
    const { webhook_id: id } = await client.webhooks.create({ ...fields, event_types: [...fields.event_types] });
    expect((await client.webhooks.update(id, { status: 'disabled' })).status).toBe('disabled');
    expect((await client.webhooks.get(id)).disabled_reason).toBe('requested');
    const delivery = await client.webhooks.sendTestEvent(id, { event_type: 'settlement.failed' });
    expect(await client.events.get(delivery.event_id)).toMatchObject({ type: 'settlement.failed', test: true });
    expect((await client.webhooks.redeliver(id, delivery.delivery_id)).delivery_id).toBe(delivery.delivery_id);
    expect(await client.webhooks.deliveries(id, { status: 'pending' }).first(5)).toHaveLength(1);
    const begun = { since: '2026-01-01T00:00:00.000Z', statuses: ['exhausted' as const] };
    const { replay_id: replayId } = await client.webhooks.replay(id, begun);
    expect(await client.webhooks.getReplay(id, replayId)).toMatchObject({ ...begun, replay_id: replayId, sent: 0 });
    await client.webhooks.delete(id);
    expect(await client.webhooks.list().first(1)).toEqual([]);
  });

  test('gives a consumer the certificate of a transfer, with its signature apart and in one file', async ({
    stack,
  }) => {
    const consumer = createConsumerClient({ baseUrl: stack.baseUrl });
    const { challenge_id, sandbox_code: code = '' } = await consumer.requestOtp({ email: 'dana@consumer.example' });
    await consumer.verifyOtp({ challenge_id, code });
    const { kind: _kind, ...person } = RECIPIENT;
    const { recipient_id } = await consumer.recipients.create(person);
    const { quote_id } = await consumer.quotes.create({ corridor: 'US-JM', amount: '100', payment_method: 'card' });
    const { transfer_id } = await consumer.transfers.create({ quote_id, recipient_id, card_token: 'tok_visa' });
    const settled = await consumer.transfers.wait(transfer_id);
    const expected = { certId: settled.certificate_id ?? '', settlementId: settled.settlement_id };
    const keys = await createClient({ baseUrl: stack.baseUrl }).certificates.keys();
    const download = await consumer.transfers.certificate(transfer_id);
    expect(certificates.verify(download, keys, expected).valid).toBe(true);
    const { file } = await consumer.transfers.signedCertificate(transfer_id);
    expect(certificates.verify({ file }, keys, expected).valid).toBe(true);
  });

  test('answers a consumer', async ({ stack }) => {
    const consumer = createConsumerClient({ baseUrl: stack.baseUrl });
    const email = 'marcia@consumer.example';
    const { challenge_id, sandbox_code: code = '' } = await consumer.requestOtp({ email });
    await consumer.verifyOtp({ challenge_id, code });
    expect((await consumer.me()).email).toBe(email);
    const { kind: _kind, ...person } = RECIPIENT;
    const { recipient_id } = await consumer.recipients.create(person);
    expect((await consumer.recipients.verify(recipient_id)).recipient_id).toBe(recipient_id);
    expect(await consumer.recipients.list().first(2)).toHaveLength(1);
    const { sandbox_public_token: public_token } = await consumer.banklink.createLinkToken();
    expect((await consumer.banklink.exchange({ public_token })).account.mask).toMatch(/^[0-9]{4}$/);
    const quote = await consumer.quotes.create({ corridor: 'US-JM', amount: '100', payment_method: 'card' });
    const transfer = await consumer.transfers.create({
      quote_id: quote.quote_id,
      recipient_id,
      card_token: 'tok_manual',
    });
    await consumer.transfers.wait(transfer.transfer_id, { until: ['awaiting_funds'] });
    expect((await consumer.transfers.cancel(transfer.transfer_id)).status).toBe('canceled');
    expect((await consumer.transfers.get(transfer.transfer_id)).status).toBe('canceled');
    expect(await consumer.transfers.list().first(2)).toHaveLength(1);
    await consumer.logout();
    expect(isApiError(await errorOf(consumer.me()), 'credential_missing')).toBe(true);
  });
});
