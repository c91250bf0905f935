/**
 * The bank ledger's webhook (contract §9): events about expected payments by ACH or wire, as Modern Treasury sends
 * them.
 */
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { type EventClaim, NO_CLAIM } from '../../db/commands/provider-event.ts';
import type { PaymentMethod } from '../../domain/payment-method.ts';
import { isLiveMode, type RuntimeEnvironment } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import {
  evidenceClaim,
  isKnownType,
  movedMoney,
  namedMoney,
  readKnownEvent,
  receiveEvent,
} from '../http/provider-event.ts';
import { readDigest, singleHeader } from '../http/provider-signature.ts';
import { verifyThenParse } from '../plugins/signed-body.ts';
import {
  BANKLEDGER_TYPES,
  BankledgerEvent,
  BankledgerSignature,
  KnownBankledgerEvent,
  OtherBankledgerObject,
  ProviderEventReceipt,
} from '../schemas/provider-event.ts';

const PROVIDER = 'bankledger' as const;

/** Register it after `acceptSignedBodies`: the signature covers the raw bytes. */
export const bankledgerEventRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v2/webhooks/bankledger',
      {
        config: { access: { auth: 'signature', refusals: ['provider_event_conflict'] } },
        ...verifyThenParse(
          ({ raw }) => readDigest(singleHeader(raw, 'x-signature')),
          deps.config.bankledgerWebhookSecrets,
        ),
        schema: {
          tags: ['Provider webhooks'],
          operationId: 'receiveBankledgerEvent',
          summary: "Receive a bank ledger's event",
          description:
            'Authenticated by `X-Signature`. `reconciled` and `partially_reconciled` ' +
            'add the amount of this event, `returned` reports that the bank took this amount back; 0 or none means ' +
            'the whole payment. The evidence is committed before the answer.',
          headers: BankledgerSignature,
          body: BankledgerEvent,
          response: { 200: ProviderEventReceipt },
        },
      },
      async (request) => {
        const event = request.body;
        const named = { provider: PROVIDER, eventId: event.id, type: event.event };
        return await receiveEvent(deps, request, named, claimOf(event, deps.runtime));
      },
    );
  };

/** What an event says about a settlement's money. @throws InvalidRequestError */
function claimOf(event: BankledgerEvent, runtime: RuntimeEnvironment): EventClaim {
  if (!isKnownType(BANKLEDGER_TYPES, event.event) || OtherBankledgerObject.safeParse(event).success) return NO_CLAIM;
  const known = readKnownEvent(KnownBankledgerEvent, event);
  return known.data.live_mode === isLiveMode(runtime) ? knownClaim(known) : NO_CLAIM;
}

function knownClaim({ event, data }: KnownBankledgerEvent): EventClaim {
  const settlementId = data.metadata?.settlement_id;
  const methods = methodsOf(data.type);
  if (settlementId === undefined) return NO_CLAIM;
  const named = { settlementId, provider: PROVIDER };
  switch (event) {
    case 'reconciled':
    case 'partially_reconciled':
      return evidenceClaim(named, methods, {
        kind: 'collection_succeeded',
        ...movedMoney(data, 'amount_reconciled', ['body', 'data']),
      });
    case 'returned':
      return evidenceClaim(named, methods, {
        kind: 'collection_returned',
        ...namedMoney(data.amount_reconciled, data.currency),
        failure: { code: returnCode(data.return_code), message: 'The bank returned the payment.' },
      });
    case 'created':
      return NO_CLAIM;
  }
}

/** An event without a type can be about both methods. */
function methodsOf(type: string | undefined): readonly PaymentMethod[] {
  if (type === undefined) return ['ach', 'wire'];
  return type === 'ach' || type === 'wire' ? [type] : [];
}

/** The bank's code, such as R01. Partners see it, so that any other text is replaced. */
const returnCode = (code: string | undefined): string =>
  code !== undefined && /^[A-Z0-9]{2,8}$/.test(code) ? code : 'payment_returned';
