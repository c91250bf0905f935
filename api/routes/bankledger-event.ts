/** The bank ledger's webhook (contract §9). Modern-Treasury-shaped events about expected payments, by ACH or wire. */
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { type EventClaim, NO_CLAIM, receiveProviderEvent } from '../../db/commands/provider-event.ts';
import type { NewEvidence } from '../../db/queries/evidence.ts';
import type { PaymentMethod } from '../../domain/payment-method.ts';
import { isLiveMode } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import { singleHeader, verifyDigest } from '../http/provider-signature.ts';
import { verifyThenParse } from '../plugins/signed-body.ts';
import { movedMoney } from '../provider-event.ts';
import { BankledgerEvent, ProviderEventReceipt } from '../schemas/provider-event.ts';

const PROVIDER = 'bankledger' as const;

/** Registered where bodies arrive as raw bytes. */
export const bankledgerEventRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v2/webhooks/bankledger',
      {
        config: { access: { auth: 'signature', refusals: ['provider_event_conflict'] } },
        preValidation: verifyThenParse((request) => {
          verifyDigest(singleHeader(request.raw, 'x-signature'), request.rawBody, deps.config.bankledgerWebhookSecrets);
        }),
        schema: {
          tags: ['Provider webhooks'],
          operationId: 'receiveBankledgerEvent',
          summary: "Receive a bank ledger's event",
          description:
            'Authenticated by `X-Signature: <hex HMAC-SHA256 of the body>`. `reconciled` and `partially_reconciled` bring the amount that this event names, `returned` takes the debit back. The evidence is committed before the answer.',
          body: BankledgerEvent,
          response: { 200: ProviderEventReceipt },
        },
      },
      async (request) => {
        const event = request.body;
        const claim = event.data.live_mode === isLiveMode(deps.runtime) ? claimOf(event) : NO_CLAIM;
        const verified = {
          provider: PROVIDER,
          eventId: event.id,
          type: event.event,
          bytes: request.rawBody,
          requestId: request.id,
        };
        const receipt = await receiveProviderEvent(deps, verified, claim);
        return { received: true as const, event_id: event.id, ...receipt };
      },
    );
  };

/** What an event says about a settlement's money. */
function claimOf({ event, data }: BankledgerEvent): EventClaim {
  const settlementId = data.metadata?.settlement_id;
  const methods = methodsOf(data.type);
  if (settlementId === undefined || data.object !== 'expected_payment') return NO_CLAIM;
  const claim = (says: Pick<NewEvidence, 'kind'> & Partial<NewEvidence>): EventClaim => ({
    about: 'settlement',
    evidence: { settlementId, provider: PROVIDER, amountMinor: null, currency: null, failure: null, ...says },
    methods,
  });
  switch (event) {
    case 'reconciled':
    case 'partially_reconciled':
      return claim({ kind: 'collection_succeeded', ...movedMoney(data, 'amount_reconciled', ['body', 'data']) });
    case 'returned':
      return claim({
        kind: 'collection_failed',
        failure: { code: returnCode(data.return_code), message: 'The bank returned the payment.' },
      });
    default:
      return NO_CLAIM;
  }
}

/** An event that names no type can be about either. */
function methodsOf(type: string | undefined): readonly PaymentMethod[] {
  if (type === undefined) return ['ach', 'wire'];
  return type === 'ach' || type === 'wire' ? [type] : [];
}

/** A bank's code as far as it is one, such as R01: it reaches partners, so nothing else of theirs may ride on it. */
const returnCode = (code: string | undefined): string =>
  code !== undefined && /^[A-Z0-9]{2,8}$/.test(code) ? code : 'payment_returned';
