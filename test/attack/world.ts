/** Tenants with one object of each kind, and calls whose answers are compared with the OpenAPI document. */
import { signIdverify } from '../../activities/providers/idverify-event.ts';
import { transferIdOf } from '../../db/queries/transfer.ts';
import { type Caller, TEST_SECRETS, type TestApi } from '../support/api.ts';
import { linkAccount, signBankledger } from '../support/bankledger.ts';
import { signCardproc } from '../support/cardproc.ts';
import { requireConformance, type SeenAnswer } from '../support/conformance.ts';
import { createConsumerRecipient, createQuote, signIn } from '../support/consumer.ts';
import { createRecipient, type Json, jsonOf, settle } from '../support/partner.ts';
import { insertCertifiedSettlement } from '../support/settlement.ts';
import { openVerification } from '../support/verification.ts';
import { ping, subscribe } from '../support/webhook.ts';
import { type DescribedOperation, describedOperations } from './document.ts';
import type { Ids } from './sample.ts';

export type Credentials = { readonly partner: Caller; readonly sessionToken: string };

/** A partner and a consumer, each with one object of each kind that it can own. */
export type Tenant = Credentials & {
  readonly partnerIds: Awaited<ReturnType<typeof createPartnerObjects>>;
  readonly consumerIds: Awaited<ReturnType<typeof createConsumer>>['ids'];
};

export type Sent = { readonly url: string; readonly body?: unknown; readonly headers?: Record<string, string> };

export type Attack = {
  readonly api: TestApi;
  readonly operations: readonly DescribedOperation[];
  createTenant(): Promise<Tenant>;
  /** The headers of the credential that the operation takes. A signature is over the bytes of the body. */
  credentialOf(operation: DescribedOperation, caller: Credentials, bytes?: Buffer): Record<string, string>;
  /** Calls with the credential that the operation takes. @throws Error for an answer that is not documented */
  send(operation: DescribedOperation, caller: Credentials | null, sent: Sent): Promise<SeenAnswer>;
};

export function createAttack(api: TestApi): Attack {
  const operations = describedOperations({ document: api.app.swagger(), operations: api.app.operations });
  return {
    api,
    operations,
    createTenant: () => createTenant(api),
    credentialOf,
    async send(operation, caller, { url, body, headers = {} }) {
      const { method } = operation;
      const bytes =
        body === undefined || typeof body === 'string' || Buffer.isBuffer(body)
          ? Buffer.from(body ?? '')
          : Buffer.from(JSON.stringify(body));
      const answer = await api.app.inject({
        method,
        url,
        headers: {
          ...(caller ? credentialOf(operation, caller, bytes) : {}),
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
  { partner, sessionToken }: Credentials,
  bytes: Buffer = Buffer.alloc(0),
): Record<string, string> {
  if (auth === 'api_key' || auth === 'optional_api_key') return { 'x-api-key': partner.apiKey };
  if (auth === 'session') return { authorization: `Bearer ${sessionToken}` };
  return auth === 'signature' ? (SIGNATURES[name]?.(bytes) ?? {}) : {};
}

/** How each provider signs (contract §9). */
export const SIGNATURES: Readonly<Record<string, (bytes: Buffer) => Record<string, string>>> = {
  'POST /v2/webhooks/cardproc': (bytes) => signCardproc(bytes),
  'POST /v2/webhooks/bankledger': (bytes) => ({ 'x-signature': signBankledger(bytes) }),
  'POST /v2/webhooks/idverify': (bytes) => signIdverify(TEST_SECRETS.idverify, bytes),
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
  const settlementId = await settle(api, partner, { recipient_id: recipientId });
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
  return {
    org_id: partner.orgId,
    key_id: partner.keyId,
    recipient_id: recipientId,
    settlement_id: settlementId,
    verification_id: verification.verification_id,
    cert_id: certified.certId,
    webhook_id: webhook.webhook_id,
    event_id: delivery.event_id,
    delivery_id: delivery.delivery_id,
    replay_id: replay.replay_id,
    wallet_id: wallet.wallet_id,
    banklink_account_token: await linkAccount(api, partner, 'public-sandbox-checking'),
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
  const consumer = await signIn(api);
  const recipientId = await createConsumerRecipient(api, consumer);
  const quote = await createQuote(api, consumer, { payout_rail: 'bank_transfer' });
  // Settled, so that it has a certificate.
  const { settlement } = await insertCertifiedSettlement(api.connection.db, consumer.consumerId);
  return {
    token: consumer.token,
    ids: {
      org_id: consumer.consumerId,
      recipient_id: recipientId,
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
