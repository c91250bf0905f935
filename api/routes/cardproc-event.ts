/** The card processor's webhook (contract §9). Stripe-shaped events; what they mean for a settlement is said here. */
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { type EventClaim, NO_CLAIM, receiveProviderEvent } from '../../db/commands/provider-event.ts';
import type { NewEvidence } from '../../db/queries/evidence.ts';
import { DomainError } from '../../domain/error.ts';
import { isLiveMode, isRemote } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import { closedGates } from '../gate.ts';
import { singleHeader, verifyTimestamped } from '../http/provider-signature.ts';
import { verifyThenParse } from '../plugins/signed-body.ts';
import { movedMoney } from '../provider-event.ts';
import { CardprocEvent, ProviderEventReceipt } from '../schemas/provider-event.ts';

const DISPUTE_TYPES = new Set(['charge.dispute.created', 'charge.dispute.closed']);

const PROVIDER = 'cardproc' as const;

/** Registered where bodies arrive as raw bytes. */
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
            'Authenticated by `Cardproc-Signature: t=<unix>,v1=<hex HMAC-SHA256 of "<t>.<body>">`. The evidence is committed before the answer.',
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
        const verified = {
          provider: PROVIDER,
          eventId: event.id,
          type: event.type,
          bytes: request.rawBody,
          requestId: request.id,
        };
        const receipt = await receiveProviderEvent(deps, verified, claim);
        return { received: true as const, event_id: event.id, ...receipt };
      },
    );
  };

/** What an event says about a settlement's money. */
function claimOf(event: CardprocEvent): EventClaim {
  const { object } = event.data;
  const settlementId = object.metadata?.settlement_id;
  if (settlementId === undefined) return NO_CLAIM;
  const claim = (says: Pick<NewEvidence, 'kind'> & Partial<NewEvidence>): EventClaim => ({
    about: 'settlement',
    evidence: { settlementId, provider: PROVIDER, amountMinor: null, currency: null, failure: null, ...says },
    methods: ['card'],
  });
  switch (event.type) {
    case 'payment_intent.succeeded':
      return claim({
        kind: 'collection_succeeded',
        ...movedMoney(object, 'amount_received', ['body', 'data', 'object']),
      });
    case 'payment_intent.payment_failed':
      return claim({
        kind: 'collection_failed',
        failure: {
          code: failureCode(object.last_payment_error?.code),
          message: 'The card processor reported that the payment failed.',
        },
      });
    case 'charge.dispute.created':
      return claim({ kind: 'dispute_opened' });
    case 'charge.dispute.closed':
      return claim({ kind: 'dispute_closed' });
    default:
      return NO_CLAIM;
  }
}

/** A provider's code as far as it is one: it reaches partners, so nothing else of theirs may ride on it. */
const failureCode = (code: string | undefined): string =>
  code !== undefined && /^[a-z][a-z0-9_]{1,63}$/.test(code) ? code : 'collection_failed';
