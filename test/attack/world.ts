/** Tenants with one object of each kind, and calls whose answers are compared with the OpenAPI document. */
import { createHmac } from 'node:crypto';
import { newId } from '../../db/id.ts';
import { transferIdOf } from '../../db/queries/transfer.ts';
import { type Caller, TEST_SECRETS, type TestApi } from '../support/api.ts';
import { requireConformance, type SeenAnswer } from '../support/conformance.ts';
import { createRecipient, type Json, jsonOf, settleBody } from '../support/partner.ts';
import { insertCertifiedSettlement } from '../support/settlement.ts';
import { openVerification } from '../support/verification.ts';
import { ping, subscribe } from '../support/webhook.ts';
import { type DescribedOperation, describedOperations } from './document.ts';
import type { Ids } from './sample.ts';

/** A partner and a consumer, each with one object of each kind that it can own. */
export type Tenant = {
  readonly partner: Caller;
  readonly sessionToken: string;
  readonly partnerIds: Awaited<ReturnType<typeof createPartnerObjects>>;
  readonly consumerIds: Awaited<ReturnType<typeof createConsumer>>['ids'];
};

export type Sent = { readonly url: string; readonly body?: unknown; readonly headers?: Record<string, string> };

export type Attack = {
  readonly api: TestApi;
  readonly operations: readonly DescribedOperation[];
  createTenant(): Promise<Tenant>;
  /** The headers of the credential that the operation takes. A signature is over the bytes of the body. */
  credentialOf(operation: DescribedOperation, tenant: Tenant, bytes?: Buffer): Record<string, string>;
  /** Calls with the credential that the operation takes. @throws Error for an answer that is not documented */
  send(operation: DescribedOperation, tenant: Tenant | null, sent: Sent): Promise<SeenAnswer>;
};

export function createAttack(api: TestApi): Attack {
  const operations = describedOperations({ document: api.app.swagger(), operations: api.app.operations });
  return {
    api,
    operations,
    createTenant: () => createTenant(api),
    credentialOf,
    async send(operation, tenant, { url, body, headers = {} }) {
      const { method } = operation;
      const bytes =
        body === undefined || typeof body === 'string' || Buffer.isBuffer(body)
          ? Buffer.from(body ?? '')
          : Buffer.from(JSON.stringify(body));
      const answer = await api.app.inject({
        method,
        url,
        headers: {
          ...(tenant ? credentialOf(operation, tenant, bytes) : {}),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { payload: bytes }),
      });
      requireConformance(method, url, answer);
      return answer;
    },
  };
}

/** The ids of the objects that the caller of this operation owns. */
export const idsOf = ({ consumerIds, partnerIds }: Tenant, { access }: DescribedOperation): Ids =>
  access.auth === 'session' ? consumerIds : partnerIds;

function credentialOf(
  { access: { auth }, name }: DescribedOperation,
  { partner, sessionToken }: Tenant,
  bytes: Buffer = Buffer.alloc(0),
): Record<string, string> {
  if (auth === 'api_key' || auth === 'optional_api_key') return { 'x-api-key': partner.apiKey };
  if (auth === 'session') return { authorization: `Bearer ${sessionToken}` };
  return auth === 'signature' ? (SIGNATURES[name]?.(bytes) ?? {}) : {};
}

const digest = (secret: string, signed: string | Buffer): string =>
  createHmac('sha256', secret).update(signed).digest('hex');

/** How each provider signs (contract §9). */
export const SIGNATURES: Readonly<Record<string, (bytes: Buffer) => Record<string, string>>> = {
  'POST /v2/webhooks/cardproc': (bytes) => {
    const time = Math.floor(Date.now() / 1_000);
    const signature = digest(TEST_SECRETS.cardproc, Buffer.concat([Buffer.from(`${time}.`), bytes]));
    return { 'cardproc-signature': `t=${time},v1=${signature}` };
  },
  'POST /v2/webhooks/bankledger': (bytes) => ({ 'x-signature': digest(TEST_SECRETS.bankledger, bytes) }),
  'POST /v2/webhooks/idverify': (bytes) => ({
    'x-payload-digest': digest(TEST_SECRETS.idverify, bytes),
    'x-payload-digest-alg': 'HMAC_SHA256_HEX',
  }),
};

async function createTenant(api: TestApi): Promise<Tenant> {
  const partner = await api.createCaller('full');
  const consumer = await createConsumer(api);
  return {
    partner,
    sessionToken: consumer.token,
    partnerIds: await createPartnerObjects(api, partner),
    consumerIds: consumer.ids,
  };
}

async function createPartnerObjects(api: TestApi, partner: Caller) {
  const recipientId = await createRecipient(api, partner);
  const settled = await accepted(
    api.call(partner, 'POST', '/v2/settle', settleBody(recipientId), { 'idempotency-key': newId() }),
  );
  const verification = await openVerification(api, partner, recipientId);
  const certified = await insertCertifiedSettlement(api.connection.db, partner.orgId);
  const webhook = await subscribe(api, partner, 'https://hooks.partner.example/settlements');
  const delivery = await ping(api, partner, webhook.webhook_id);
  const replays = `/v1/webhooks/${webhook.webhook_id}/replay`;
  const replay = await accepted(api.call(partner, 'POST', replays, { since: '2020-01-01T00:00:00Z' }));
  // It has ended, so that another one may begin.
  await endReplay(api, replay.replay_id);
  const wallet = await accepted(
    api.call(partner, 'POST', '/v1/wallets', { name: 'Treasury', signers: [{ address: WALLET_SIGNER }], threshold: 1 }),
  );
  const linked = await accepted(
    api.call(partner, 'POST', '/v2/banklink/exchange', { public_token: 'public-sandbox-checking' }),
  );
  return {
    org_id: partner.orgId,
    key_id: partner.keyId,
    recipient_id: recipientId,
    settlement_id: settled.settlement_id,
    verification_id: verification.verification_id,
    cert_id: certified.certId,
    webhook_id: webhook.webhook_id,
    event_id: delivery.event_id,
    delivery_id: delivery.delivery_id,
    replay_id: replay.replay_id,
    wallet_id: wallet.wallet_id,
    banklink_account_token: linked.access_token,
  } satisfies Ids;
}

const endReplay = (api: TestApi, replayId: string) =>
  api.connection.pool.query(
    `UPDATE webhook_replays SET status = 'completed', finished_at = now() WHERE replay_id = $1`,
    [replayId],
  );

const WALLET_SIGNER = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';

/** Signs a new consumer in, who creates one object of each kind. */
async function createConsumer(api: TestApi) {
  const challenge = await accepted(
    api.call(null, 'POST', '/consumer/auth/request-otp', { email: `${newId()}@consumer.example` }),
  );
  const session = await accepted(
    api.call(null, 'POST', '/consumer/auth/verify-otp', {
      challenge_id: challenge.challenge_id,
      code: challenge.sandbox_code,
    }),
  );
  const token: string = session.access_token;
  const post = async (url: string, body: unknown): Promise<Json> =>
    await accepted(api.call(null, 'POST', url, body, { authorization: `Bearer ${token}`, 'idempotency-key': newId() }));
  const bankDetails = { bank_name: 'National Commercial Bank', account_number: '123456789', currency: 'JMD' };
  const recipient = await post('/consumer/recipients', {
    entity_type: 'individual',
    name: 'Marcia Brown',
    country: 'JM',
    bank_details: bankDetails,
  });
  const quote = await post('/consumer/quote', {
    corridor: 'US-JM',
    amount: '250.00',
    payment_method: 'card',
    payout_rail: 'bank_transfer',
  });
  // Settled, so that it has a certificate.
  const { settlement } = await insertCertifiedSettlement(api.connection.db, session.consumer_id);
  return {
    token,
    ids: {
      org_id: session.consumer_id,
      recipient_id: recipient.recipient_id,
      quote_id: quote.quote_id,
      transfer_id: transferIdOf(settlement),
      settlement_id: settlement.settlementId,
    } satisfies Ids,
  };
}

async function accepted(call: ReturnType<TestApi['call']>): Promise<Json> {
  const answer = await call;
  if (answer.statusCode >= 300) throw new Error(`refused: ${answer.body}`);
  return jsonOf(answer);
}
