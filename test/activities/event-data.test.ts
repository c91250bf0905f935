/** What an event shows is what a read would have answered at that change (contract §11). */
import { describe, expect } from 'vitest';
import { WebhookEvent } from '../../api/schemas/event.ts';
import { cancelSettlement, recordRefund } from '../../db/commands/settlement.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { cardprocBody, sendCardproc } from '../support/cardproc.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createRecipient, type Json, jsonOf } from '../support/partner.ts';
import { BY_MANUAL_CARD, BY_WIRE } from '../support/settlement.ts';
import { complete, openVerification } from '../support/verification.ts';

/** Everything in an answer or an event that says who is paid. The account is held by its last characters alone. */
const PERSONAL = /Marcia|SANCTIONED|PAYOUT|123456789|\b6789\b|marcia@|\+1876|National Commercial/;

const test = withApi()
  /** The events of an object, oldest first. Each is as the OpenAPI document says, to the field. */
  .extend('eventsOf', FILE, ({ api, partner }) => async (objectId: string): Promise<Json[]> => {
    const events: Json[] = jsonOf(await api.call(partner, 'GET', `/v1/events?object_id=${objectId}&limit=100`));
    for (const event of events) {
      expect(WebhookEvent.parse(event)).toEqual(event);
      expect(event.test).toBe(event.type === 'webhook.ping' ? true : undefined);
    }
    return events.toSorted((a, b) => a.sequence - b.sequence);
  })
  /** Does each step, and compares the last event that it sent with a read. It returns the types of all events. */
  .extend(
    'follow',
    FILE,
    ({ steps, eventsOf }) =>
      async (settlementId: string, changes: readonly (() => Promise<unknown>)[]): Promise<string[]> => {
        let seen = 0;
        for (const change of [async () => undefined, ...changes]) {
          await change();
          const events = await eventsOf(settlementId);
          expect(events.length).toBeGreaterThan(seen);
          seen = events.length;
          const { exception, ...data } = events.at(-1).data;
          const { timeline: _timeline, payee: _payee, ...read } = await steps.read(settlementId);
          expect(data).toEqual(read);
          if (exception) expect(read.exceptions).toContainEqual(exception);
          expect(JSON.stringify(events).replaceAll('"account_number":"000123456789"', '')).not.toMatch(PERSONAL);
        }
        return (await eventsOf(settlementId)).map(({ type }) => type.replace('settlement.', ''));
      },
  );

describe('the data of the last event of each change of a settlement is what a read answers, without timeline and payee', () => {
  test('paid by card, and disputed afterwards', async ({ api, partner, steps, follow, eventsOf }) => {
    const id = await steps.accept(BY_MANUAL_CARD);
    const types = await follow(id, [
      () => steps.activities.admitSettlement(steps.step(id)),
      () => sendCardproc(api, cardprocBody(id)),
      () => steps.activities.sendPayout(steps.step(id)),
      () => sendCardproc(api, cardprocBody(id, { amount: 25_000 }, 'charge.dispute.created')),
    ]);
    expect(types).toEqual([
      ...['accepted', 'awaiting_funds', 'funds_received', 'funded', 'paying_out', 'settled', 'exception'],
    ]);
    const settled = (await eventsOf(id)).find(({ type }) => type === 'settlement.settled');
    const [issued] = await eventsOf(settled.data.certificate_id);
    const read = await api.call(partner, 'GET', `/v1/caribbean/certificate/${settled.data.certificate_id}`);
    const { timeline: _timeline, ...certificate } = JSON.parse(read.body);
    const { cert_id, sha256, issued_at, ...shown } = issued.data;
    expect(shown).toEqual(certificate);
    expect({ cert_id, etag: `"${sha256}"`, issued_at }).toEqual({
      cert_id: settled.data.certificate_id,
      etag: read.headers.etag,
      issued_at: settled.timestamp,
    });
  });

  test('underpaid, overpaid and in another currency by wire; its surplus is given back', async ({
    api,
    steps,
    follow,
    eventsOf,
  }) => {
    const id = await steps.accept(BY_WIRE);
    const wire = (amount_reconciled: number, currency = 'USD') =>
      sendBankledger(api, bankledgerBody(id, { amount_reconciled, currency }));
    const types = await follow(id, [
      () => steps.activities.admitSettlement(steps.step(id)),
      () => wire(10_000),
      () => wire(10_000, 'EUR'),
      () => wire(20_000),
      () => steps.activities.sendPayout(steps.step(id)),
      () =>
        recordRefund(
          api.deps,
          id,
          { reference: 'back', amountMinor: 5_000n },
          { operator: 'ana', note: 'n', requestId: 'r' },
        ),
      () => wire(100),
    ]);
    expect(types).toEqual([
      ...['accepted', 'awaiting_funds', 'funds_received', 'exception', 'funds_received', 'funded', 'exception'],
      ...['paying_out', 'settled', 'refunded', 'funds_received', 'exception'],
    ]);
    const waiting = (await eventsOf(id)).filter(({ data }) => data.status === 'awaiting_funds');
    for (const { data } of waiting) expect(data.payment_instructions).toMatchObject({ reference: id });
  });

  test('refused by the rail', async ({ steps, follow }) => {
    const id = await steps.acceptInternal({ name: 'PAYOUT REFUSED' });
    const types = await follow(id, [
      () => steps.activities.admitSettlement(steps.step(id)),
      () => steps.activities.sendPayout(steps.step(id)),
    ]);
    expect(types.at(-1)).toBe('failed');
  });

  test('reviewed, and confirmed by the rail', async ({ steps, follow }) => {
    const id = await steps.inReview();
    const types = await follow(id, [
      async () => {
        await steps.answerPayout(id, 'payout_confirmed');
        await steps.activities.reviewSettlement(steps.step(id));
      },
    ]);
    expect(types.slice(-2)).toEqual(['needs_review', 'settled']);
  });

  test('held, paid too early, and canceled', async ({ api, partner, steps, follow }) => {
    const id = await steps.accept({ ...BY_WIRE, amount: '2000.00' });
    const types = await follow(id, [
      () => steps.activities.admitSettlement(steps.step(id)),
      () => sendBankledger(api, bankledgerBody(id, { amount_reconciled: 100 })),
      () => cancelSettlement(api.deps, partner.orgId, id, 'r'),
    ]);
    expect(types).toEqual(['accepted', 'compliance_hold', 'funds_received', 'canceled']);
  });

  test('rejected by the screening', async ({ steps, follow }) => {
    const id = await steps.accept({}, { name: 'SANCTIONED' });
    const types = await follow(id, [() => steps.activities.admitSettlement(steps.step(id))]);
    expect(types).toEqual(['accepted', 'rejected']);
  });

  test('returned before the payout, and expired', async ({ api, steps, follow }) => {
    const returned = await steps.waiting(BY_WIRE);
    const types = await follow(returned, [
      () => sendBankledger(api, bankledgerBody(returned, { amount_reconciled: 25_000 })),
      () => sendBankledger(api, bankledgerBody(returned, { amount_reconciled: 100, return_code: 'R10' }, 'returned')),
      () => steps.activities.reviewSettlement(steps.step(returned)),
    ]);
    expect(types.slice(2)).toEqual(['funds_received', 'exception', 'failed']);
    const expired = await steps.waiting(BY_WIRE);
    const { expiresAt } = await steps.stored(expired);
    await follow(expired, [() => steps.activities.reviewSettlement(steps.step(expired, expiresAt?.getTime()))]);
  });
});

describe('the data of an event is what a read answers, without personal data', () => {
  test('for each change of a verification', async ({ api, partner, eventsOf }) => {
    const recipientId = await createRecipient(api, partner);
    const { verification_id: id } = await openVerification(api, partner, recipientId);
    for (const change of [
      async () => undefined,
      () => complete(api, partner, id, { status: 'verified', verified_name: 'Marcia Brown' }),
    ]) {
      await change();
      const { verified_name: _name, ...read } = jsonOf(await api.call(partner, 'GET', `/v1/kyc/${id}`));
      const events = await eventsOf(id);
      expect(events.at(-1).data).toEqual(read);
      expect(JSON.stringify(events)).not.toMatch(PERSONAL);
    }
  });

  test('for the deactivation of a recipient', async ({ api, partner, eventsOf }) => {
    const contacts = { email: 'marcia@brown.example', phone: '+18765550123', metadata: { contract: 'C-7' } };
    const id = await createRecipient(api, partner, contacts);
    await api.call(partner, 'DELETE', `/v1/recipients/${id}`);
    const read = jsonOf(await api.call(partner, 'GET', `/v1/recipients/${id}`));
    const { name: _name, email: _email, phone: _phone, bank_details: _bank, mobile_details: _mobile, ...shown } = read;
    const events = await eventsOf(id);
    expect(events.map(({ type, timestamp, data }) => ({ type, timestamp, data }))).toEqual([
      { type: 'recipient.deactivated', timestamp: read.updated_at, data: shown },
    ]);
    expect(JSON.stringify(events)).not.toMatch(PERSONAL);
  });

  test('for each change of an API key', async ({ api, partner, eventsOf }) => {
    const keysPath = `/v1/orgs/${partner.orgId}/keys`;
    const create = { name: 'Payouts', scope: 'read', allowed_cidrs: ['203.0.113.0/24'] };
    const { key_id: id } = jsonOf(await api.call(partner, 'POST', keysPath, create));
    for (const change of [async () => undefined, () => api.call(partner, 'POST', `/v1/orgs/keys/${id}/rotate`)]) {
      await change();
      const keys: Json[] = jsonOf(await api.call(partner, 'GET', keysPath));
      const events = await eventsOf(id);
      expect(events.at(-1).data).toEqual(keys.find(({ key_id }) => key_id === id));
    }
  });

  test('for a test of a subscription', async ({ api, partner, eventsOf }) => {
    const body = { url: 'https://hooks.partner.example/', event_types: ['*'] };
    const { secret: _secret, ...webhook } = jsonOf(await api.call(partner, 'POST', '/v1/webhooks', body));
    await api.call(partner, 'POST', `/v1/webhooks/${webhook.webhook_id}/test`);
    const events = await eventsOf(webhook.webhook_id);
    expect(events.map(({ data }) => data)).toEqual([webhook]);
  });
});
