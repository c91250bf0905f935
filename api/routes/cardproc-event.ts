/** The card processor's webhook (contract §9): events about card payments and disputes, as Stripe sends them. */
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { type EventClaim, NO_CLAIM } from '../../db/commands/provider-event.ts';
import { DomainError } from '../../domain/error.ts';
import { isLiveMode, isRemote, type RuntimeEnvironment } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import { closedGates } from '../http/gate.ts';
import {
  evidenceClaim,
  isKnownType,
  movedMoney,
  namedMoney,
  readKnownEvent,
  receiveEvent,
} from '../http/provider-event.ts';
import { readTimestamped, singleHeader } from '../http/provider-signature.ts';
import { verifyThenParse } from '../plugins/signed-body.ts';
import {
  CARDPROC_TYPES,
  CardprocEvent,
  CardprocSignature,
  KnownCardprocEvent,
  ProviderEventReceipt,
} from '../schemas/provider-event.ts';

/** How the type of every event about a dispute begins. */
const DISPUTE = 'charge.dispute.';

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
        ...verifyThenParse(
          ({ raw }) => readTimestamped(singleHeader(raw, 'cardproc-signature'), deps.now()),
          deps.config.cardprocWebhookSecrets,
        ),
        schema: {
          tags: ['Provider webhooks'],
          operationId: 'receiveCardprocEvent',
          summary: "Receive a card processor's event",
          description: 'Authenticated by `Cardproc-Signature`. The evidence is committed before the answer.',
          headers: CardprocSignature,
          body: CardprocEvent,
          response: { 200: ProviderEventReceipt },
        },
      },
      async (request) => {
        const event = request.body;
        // The event is refused before it is read: its content does not matter.
        if (isRemote(deps.runtime) && event.type.startsWith(DISPUTE))
          throw new DomainError('launch_gates_closed', { gates: await closedGates(deps, request.log) });
        const named = { provider: PROVIDER, eventId: event.id, type: event.type };
        return await receiveEvent(deps, request, named, claimOf(event, deps.runtime));
      },
    );
  };

/** What an event says about a settlement's money. @throws InvalidRequestError */
function claimOf(event: CardprocEvent, runtime: RuntimeEnvironment): EventClaim {
  if (!isKnownType(CARDPROC_TYPES, event.type)) return NO_CLAIM;
  const known = readKnownEvent(KnownCardprocEvent, event);
  return known.livemode === isLiveMode(runtime) ? knownClaim(known) : NO_CLAIM;
}

function knownClaim(event: KnownCardprocEvent): EventClaim {
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
      return evidenceClaim(named, METHODS, {
        kind: 'dispute_opened',
        ...namedMoney(object.amount, object.currency),
      });
    case 'charge.dispute.closed':
      return evidenceClaim(named, METHODS, { kind: 'dispute_closed' });
    case 'payment_intent.processing':
      return NO_CLAIM;
  }
}

/** The processor's code, such as `card_declined`. Partners see it, so that any other text is replaced. */
const failureCode = (code: string | undefined): string =>
  code !== undefined && /^[a-z][a-z0-9_]{1,63}$/.test(code) ? code : 'collection_failed';
