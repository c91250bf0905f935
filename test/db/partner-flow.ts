/**
 * What partners, consumers, providers and the workflows of settlements do, so that each of their statements is sent.
 */
import { sandboxActivities } from '../../activities/sandbox.ts';
import { verificationActivities } from '../../activities/verification.ts';
import { openProviderVerification } from '../../db/commands/verification.ts';
import { cursorText } from '../../domain/page.ts';
import { bodyOf, headersOf, urlOf } from '../attack/sample.ts';
import { createAttack, idsOf } from '../attack/world.ts';
import { activityDeps } from '../support/activity.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { bankledgerBody, linkAccount, sendBankledger } from '../support/bankledger.ts';
import { cardprocBody, sendCardproc } from '../support/cardproc.ts';
import { callAs, createConsumerRecipient, createQuote, signIn, transfer } from '../support/consumer.ts';
import { createRecipient, type Json, jsonOf, recipientBody, settleBody } from '../support/partner.ts';
import { BY_MANUAL_CARD, BY_WIRE, createSteps } from '../support/settlement.ts';
import { complete, idverifyBody, openVerification, sendIdverify, statusOf } from '../support/verification.ts';

/** The organization with a third of all settlements, and what it has. */
export type Large = { readonly partner: Caller; readonly webhookId: string; readonly recipientId: string };

/** Each operation of the document once, with own objects. */
export async function playOperations(api: TestApi): Promise<void> {
  const attack = createAttack(api);
  const tenant = await attack.createTenant();
  for (const operation of attack.operations) {
    const ids = idsOf(tenant, operation);
    const body = bodyOf(operation, ids);
    const sent = { url: urlOf(operation, ids), headers: headersOf(operation), ...(body === undefined ? {} : { body }) };
    const answer = await attack.send(operation, tenant, sent);
    if (answer.statusCode >= 500) throw new Error(`${operation.name} answered ${answer.statusCode}`);
  }
}

/** The lists of the large organization: with each filter, and a later page. */
export async function playLists(api: TestApi, { partner, webhookId, recipientId }: Large): Promise<void> {
  // Not by `api.call`, which compares the answer with the document: filled events are not as documented.
  const get = async (url: string, headers: Record<string, string> = {}): Promise<void> => {
    const answer = await api.app.inject({ url, headers: { 'x-api-key': partner.apiKey, ...headers } });
    if (answer.statusCode !== 200) throw new Error(`${url} answered ${answer.body}`);
  };
  const after = `after=${cursorText({ at: new Date(Date.now() - 86_400_000), id: 'a' })}`;
  const dates = 'created_from=2020-01-01T00:00:00Z&created_to=2100-01-01T00:00:00Z';
  const filters: Record<string, readonly string[]> = {
    '/v2/settlements': [
      ...['', after, 'offset=20', dates, `${dates}&${after}`, 'status=settled', 'status=settled&status=awaiting_funds'],
      ...['corridor=CA-JM', 'payment_method=wire', `status=settled&corridor=CA-JM&payment_method=card&${after}`],
      ...[`recipient_id=${recipientId}`, `recipient_id=${recipientId}&status=settled&${after}`, 'status=rejected'],
      ...[
        'reference=invoice 1',
        'reference=invoice 1&corridor=CA-JM',
        `reference=invoice 1&recipient_id=${recipientId}`,
        'reference=invoice 1&status=rejected',
      ],
      ...[
        'metadata[team]=a',
        `metadata[team]=a&recipient_id=${recipientId}`,
        `metadata[team]=a&status=settled&${after}`,
      ],
      ...[
        'metadata[team]=a&reference=invoice 1',
        'metadata[team]=a&metadata[desk]=b',
        'metadata[team]=a&status=rejected',
      ],
      ...['created_from=2020-01-01T00:00:00Z', 'created_to=2100-01-01T00:00:00Z&status=settled'],
      ...[`recipient_id=${recipientId}&status=rejected`, `metadata[team]=a&payment_method=wire&${after}`],
      `metadata[team]=a&recipient_id=${recipientId}&status=awaiting_funds`,
    ],
    '/v1/caribbean/settlements': ['', 'status=settled'],
    '/v1/recipients': [
      ...['', after, 'country=JM', 'is_active=true', 'verification_status=unverified', 'metadata[staff]=a'],
      ...[`country=JM&is_active=true&metadata[staff]=a&${after}`],
    ],
    '/v1/events': [
      '',
      after,
      'type=settlement.settled',
      `type=settlement.settled&type=settlement.failed&${after}`,
      dates,
    ],
    [`/v1/webhooks/${webhookId}/deliveries`]: [
      '',
      after,
      'status=succeeded',
      'status=pending',
      'status=exhausted',
      `status=skipped&${after}`,
    ],
    '/v1/webhooks': ['', after],
    '/v1/wallets': ['', after],
    [`/v1/orgs/${partner.orgId}/keys`]: ['', after],
  };
  await get('/v1/usage?from=2026-11-01&to=2026-11-20');
  for (const [path, queries] of Object.entries(filters))
    for (const query of queries) await get(`${path}?limit=20&${query}`);
  await get('/v2/settlements', { accept: 'text/csv' });
}

/** Settlements from their acceptance to each end. */
/** One of them runs alone, and those that arrive meanwhile share statements. */
async function acceptTogether(api: TestApi): Promise<void> {
  const caller = await api.createCaller();
  const body = settleBody(await createRecipient(api, caller));
  const accept = () => api.call(caller, 'POST', '/v2/settle', body, { 'idempotency-key': crypto.randomUUID() });
  await Promise.all(Array.from({ length: 8 }, accept));
}

export async function playSettlements(api: TestApi, { partner }: Large): Promise<void> {
  const { accept, acceptInternal, waiting, activities, step, answerPayout } = createSteps(api, partner);
  const call = (method: 'GET' | 'POST', url: string, body?: unknown, headers?: Record<string, string>) =>
    api.call(partner, method, url, body, headers);
  const card = await waiting({ ...BY_MANUAL_CARD, metadata: { team: 'a' }, reference: 'invoice 1' });
  await sendCardproc(api, { ...cardprocBody(card, { amount_received: 10_000 }), id: `evt_${card}` });
  await activities.reviewSettlement(step(card));
  await sendCardproc(api, cardprocBody(card));
  await activities.reviewSettlement(step(card));
  await activities.sendPayout(step(card));
  await call('GET', `/v2/settle/${card}`);
  const wire = await waiting(BY_WIRE);
  await sendBankledger(api, bankledgerBody(wire));
  await activities.reviewSettlement(step(wire));
  const { sandbox_public_token: publicToken } = jsonOf(await call('POST', '/v2/banklink/link-token'));
  await linkAccount(api, partner, publicToken);
  const ach = await waiting({
    payment_method: 'ach',
    card_token: undefined,
    banklink_account_token: await linkAccount(api, partner),
  });
  await call('POST', `/v2/test-helpers/settlements/${ach}/events`, { event: 'collection_partial', amount: '100.00' });
  await call('POST', `/v2/test-helpers/settlements/${ach}/advance`, { by: 'PT5M' });
  await activities.reviewSettlement(step(ach, Date.now() + 30 * 86_400_000));
  const { planCollection } = sandboxActivities(activityDeps(api, 'http://127.0.0.1:1', { nudge: () => undefined }));
  await planCollection({ settlementId: card, orgId: partner.orgId });
  await activities.cancelOnRequest(step(await waiting()));
  await acceptTogether(api);
  const unanswered = await waiting({ ...BY_MANUAL_CARD }, { name: 'PAYOUT PENDING' });
  await sendCardproc(api, cardprocBody(unanswered));
  await activities.sendPayout(step(unanswered));
  await answerPayout(unanswered, 'payout_confirmed');
  await activities.reviewSettlement(step(unanswered));
  const canceled = await accept();
  await call('POST', `/v2/settle/${canceled}/cancel`);
  const internal = await acceptInternal();
  await activities.admitSettlement(step(internal));
  await activities.sendPayout(step(internal));
}

/** Recipients, and what the identity provider says about them. */
export async function playVerifications(api: TestApi, { partner }: Large): Promise<void> {
  const deps = activityDeps(api, 'http://127.0.0.1:1', { nudge: () => undefined });
  const { reviewVerification, createApplicant } = verificationActivities(deps);
  const recipientId = await createRecipient(api, partner, { metadata: { staff: 'a' } });
  const opened = await openVerification(api, partner, recipientId);
  await statusOf(api, partner, recipientId);
  await complete(api, partner, opened.verification_id, { status: 'verified', verified_name: 'Marcia Brown' });
  const another = await openVerification(api, partner, await createRecipient(api, partner));
  await reviewVerification({
    ...{ verificationId: another.verification_id, orgId: partner.orgId },
    nowMs: Date.now() + 365 * 86_400_000,
  });
  const applied = await api.call(partner, 'POST', '/v1/kyc/idverify/applicant', {
    recipient_id: await createRecipient(api, partner),
  });
  const { verification_id: verificationId } = jsonOf(applied);
  await createApplicant({ verificationId, orgId: partner.orgId });
  await sendIdverify(api, idverifyBody(verificationId));
  const opening = {
    ...{ orgId: partner.orgId, recipientId: await createRecipient(api, partner), requestId: 'flow' },
    ...{ keyed: undefined, givenContact: { email: null, phone: null, country: null } },
  };
  // The provider has no applicant yet.
  for (const levelName of ['basic-kyc-level', 'another'])
    await openProviderVerification(api.deps, { ...opening, levelName });
  const held = await createRecipient(api, partner, { name: 'SCREENING HIT' });
  await api.call(partner, 'PUT', `/v1/recipients/${held}`, { name: 'Marcia Brown', metadata: { staff: 'b' } });
  await api.call(partner, 'DELETE', `/v1/recipients/${held}`);
}

/** Keys that are made, rotated and revoked, and requests that are sent twice with one idempotency key. */
export async function playKeys(api: TestApi): Promise<void> {
  const partner = await api.createCaller();
  const call = async (
    method: 'GET' | 'POST' | 'DELETE',
    url: string,
    body?: unknown,
    caller = partner,
  ): Promise<Json> => {
    const answer = await api.call(caller, method, url, body, {
      'idempotency-key': `the-same-request-${url.replaceAll(/\W/g, '-')}`,
    });
    if (answer.statusCode >= 300) throw new Error(`${method} ${url} answered ${answer.body}`);
    return answer.body === '' ? undefined : jsonOf(answer);
  };
  const draft = { name: 'payouts', scope: 'read' };
  const keys = `/v1/orgs/${partner.orgId}/keys`;
  const made = await call('POST', keys, draft);
  await call('POST', keys, draft);
  const own = { ...partner, keyId: made.key_id, apiKey: made.api_key };
  const rotate = `/v1/orgs/keys/${made.key_id}/rotate`;
  const rotated = await call('POST', rotate, undefined, own);
  await call('POST', rotate, undefined, own);
  await call('DELETE', `/v1/orgs/keys/${rotated.key_id}`);
  for (let time = 0; time < 2; time += 1) await call('POST', '/v1/recipients', recipientBody());
  const wallet = await call('POST', '/v1/wallets', {
    name: 'Treasury',
    signers: [{ address: `0x${'a1'.repeat(20)}` }],
    threshold: 1,
  });
  await call('GET', `/v1/wallets/${wallet.wallet_id}`);
  await call('GET', '/v1/me');
  // Keys that were found before are looked up together.
  const callers = await Promise.all(Array.from({ length: 4 }, () => api.createCaller()));
  for (let time = 0; time < 2; time += 1)
    await Promise.all(callers.map((caller) => call('GET', '/v1/me', undefined, caller)));
}

/** A consumer from the code to the certificate. */
export async function playConsumer(api: TestApi): Promise<void> {
  const consumer = await signIn(api);
  const get = (url: string) => callAs(api, consumer, 'GET', url);
  const recipientId = await createConsumerRecipient(api, consumer);
  const quote = await createQuote(api, consumer);
  const body = { quote_id: quote.quote_id, recipient_id: recipientId, card_token: 'tok_manual' };
  const sent: Json = jsonOf(await transfer(api, consumer, body));
  for (const url of ['me', 'recipients', 'transfers', `transfers/${sent.transfer_id}`]) await get(`/consumer/${url}`);
  await callAs(api, consumer, 'POST', `/consumer/transfers/${sent.transfer_id}/cancel`);
  await callAs(api, consumer, 'POST', '/consumer/auth/logout');
}
