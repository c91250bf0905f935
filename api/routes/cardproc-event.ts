/** The card processor's webhook (contract §9): events about card payments and disputes, as Stripe sends them. */
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { type EventClaim, NO_CLAIM } from '../../db/commands/provider-event.ts';
import { DomainError } from '../../domain/error.ts';
import { isLiveMode, isRemote } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import { closedGates } from '../http/gate.ts';
import { evidenceClaim, movedMoney, receiveEvent } from '../http/provider-event.ts';
import { singleHeader, verifyTimestamped } from '../http/provider-signature.ts';
import { verifyThenParse } from '../plugins/signed-body.ts';
import { CardprocEvent, ProviderEventReceipt } from '../schemas/provider-event.ts';

const DISPUTE_TYPES = new Set(['charge.dispute.created', 'charge.dispute.closed']);

const PROVIDER = 'cardproc' as const;
const METHODS = ['card'] as const;

/** Register it after `acceptSignedBodies`: the signature covers the raw bytes. */
export const cardprocEventRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v2/webhooks/cardproc',
      {
        config: { access: { auth: 'signature', refusals: ['provider_event_conflict', 'launch_gates_closed'] } },
        preValidation: verifyThenParse((request) => {
          verifyTimestamped(
            singleHeader(request.raw, 'cardproc-signature'),
            request.rawBody,
            deps.config.cardprocWebhookSecrets,
            deps.now(),
          );
        }),
        schema: {
          tags: ['Provider webhooks'],
          operationId: 'receiveCardprocEvent',
          summary: "Receive a card processor's event",
          description:
            'Authenticated by `Cardproc-Signature: t=<unix>,v1=<hex HMAC-SHA256 of "<t>.<body>">`. The evidence is ' +
            'committed before the answer.',
          body: CardprocEvent,
          response: { 200: ProviderEventReceipt },
        },
      },
      async (request) => {
        const event = request.body;
        if (isRemote(deps.runtime) && DISPUTE_TYPES.has(event.type)) {
          throw new DomainError('launch_gates_closed', { gates: await closedGates(deps, request.log) });
        }
        const claim = event.livemode === isLiveMode(deps.runtime) ? claimOf(event) : NO_CLAIM;
        return await receiveEvent(deps, request, { provider: PROVIDER, eventId: event.id, type: event.type }, claim);
      },
    );
  };

/** What an event says about a settlement's money. */
function claimOf(event: CardprocEvent): EventClaim {
  const { object } = event.data;
  const settlementId = object.metadata?.settlement_id;
  if (settlementId === undefined) return NO_CLAIM;
  const named = { settlementId, provider: PROVIDER };
  switch (event.type) {
    case 'payment_intent.succeeded':
      return evidenceClaim(named, METHODS, {
        kind: 'collection_succeeded',
        ...movedMoney(object, 'amount_received', ['body', 'data', 'object']),
      });
    case 'payment_intent.payment_failed':
      return evidenceClaim(named, METHODS, {
        kind: 'collection_failed',
        failure: {
          code: failureCode(object.last_payment_error?.code),
          message: 'The card processor reported that the payment failed.',
        },
      });
    case 'charge.dispute.created':
      return evidenceClaim(named, METHODS, { kind: 'dispute_opened' });
    case 'charge.dispute.closed':
      return evidenceClaim(named, METHODS, { kind: 'dispute_closed' });
    default:
      return NO_CLAIM;
  }
}

/** The processor's code, such as `card_declined`. Partners see it, so that any other text is replaced. */
const failureCode = (code: string | undefined): string =>
  code !== undefined && /^[a-z][a-z0-9_]{1,63}$/.test(code) ? code : 'collection_failed';
