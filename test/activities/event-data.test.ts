/**
 * What an event shows is what a read would have answered at that change (contract §11). The events of a settlement in
 * every order of its changes are in test/explore/conformance.test.ts.
 */
import { describe, expect } from 'vitest';
import { WebhookEvent } from '../../api/schemas/event.ts';
import { cardprocBody, sendCardproc } from '../support/cardproc.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createRecipient, type Json, jsonOf } from '../support/partner.ts';
import { BY_MANUAL_CARD } from '../support/settlement.ts';
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
  /** Compares the last event of a settlement with a read. It returns all of its events. */
  .extend('compared', FILE, ({ steps, eventsOf }) => async (settlementId: string): Promise<Json[]> => {
    const events = await eventsOf(settlementId);
    const { exception, ...data } = events.at(-1).data;
    const { timeline: _timeline, payee: _payee, ...read } = await steps.read(settlementId);
    expect(data).toEqual(read);
    if (exception) expect(read.exceptions).toContainEqual(exception);
    expect(JSON.stringify(events).replaceAll('"account_number":"000123456789"', '')).not.toMatch(PERSONAL);
    return events;
  });

describe('the data of an event is what a read answers, without personal data', () => {
  test('for each change of a settlement that is paid by card and disputed afterwards', async ({
    api,
    partner,
    steps,
    eventsOf,
    compared,
  }) => {
    const id = await steps.accept(BY_MANUAL_CARD);
    let events = await compared(id);
    for (const change of [
      () => steps.activities.admitSettlement(steps.step(id)),
      () => sendCardproc(api, cardprocBody(id)),
      () => steps.activities.sendPayout(steps.step(id)),
      () => sendCardproc(api, cardprocBody(id, { amount: 25_000 }, 'charge.dispute.created')),
    ]) {
      await change();
      events = await compared(id);
    }
    expect(events.map(({ type }) => type.replace('settlement.', ''))).toEqual([
      ...['accepted', 'awaiting_funds', 'funds_received', 'funded', 'paying_out', 'settled', 'exception'],
    ]);
    const settled = events.find(({ type }) => type === 'settlement.settled');
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

  test('for a settlement that is rejected by the screening', async ({ steps, compared }) => {
    const id = await steps.accept({}, { name: 'SANCTIONED' });
    await steps.activities.admitSettlement(steps.step(id));
    const types = (await compared(id)).map(({ type }) => type);
    expect(types).toEqual(['settlement.accepted', 'settlement.rejected']);
  });

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
