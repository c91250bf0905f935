/** A consumer's transfers (contract §12): settlements of the consumer's own organization, under ids of their own. */
import type { FastifyReply } from 'fastify';
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import type { z } from 'zod';
import { getQuote } from '../../db/queries/quote.ts';
import { detailSettlements, listSettlements } from '../../db/queries/settlement.ts';
import { getTransfer, transferIdOf } from '../../db/queries/transfer.ts';
import { CONSUMER_LIST_MAX } from '../../domain/consumer.ts';
import { ValidationError } from '../../domain/error.ts';
import type { InputMethod } from '../../domain/payment-method.ts';
import type { PricingInput } from '../../domain/pricing.ts';
import { quoteInputs } from '../../domain/quote.ts';
import { settlementDetail } from '../../domain/resource/settlement.ts';
import { isTerminal, type Settlement } from '../../domain/settlement.ts';
import { acceptSettlement } from '../acceptance.ts';
import { answerList, listOf } from '../consumer-list.ts';
import type { ApiDeps } from '../deps.ts';
import { faultsOf } from '../http/validation.ts';
import { findAnswer } from '../idempotency.ts';
import { consumerOf } from '../route-config.ts';
import { SessionHeader } from '../schemas/session.ts';
import { QuotedPayment, TransferBody, TransferHeaders, TransferPath, TransferResponse } from '../schemas/transfer.ts';
import { ACCEPTED_HEADERS, commandFingerprint, READ_HEADERS, sendAccepted } from './settlement.ts';

const TAGS = ['Consumer'];
/** Seconds after which a transfer that is still under way is worth reading again. */
const POLL_SECONDS = 1;

export const transferRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/consumer/transfers',
      {
        config: {
          access: {
            auth: 'session',
            remote: 'launch_gates_closed',
            refusals: ['not_found', 'idempotency_key_reused', 'state_conflict'],
            headers: ACCEPTED_HEADERS,
          },
        },
        schema: {
          tags: TAGS,
          operationId: 'createTransfer',
          summary: 'Send money',
          description: 'Local-sandbox simulation. Rate and fees are those of acceptance, also where a quote is named.',
          headers: TransferHeaders,
          body: TransferBody,
          response: { 201: TransferResponse },
        },
      },
      async (request, reply) => {
        const { body } = request;
        const { orgId } = consumerOf(request);
        const keyed = {
          orgId,
          idempotencyKey: request.headers['idempotency-key'],
          fingerprint: commandFingerprint(request),
        };
        // A key that was used answers before anything that the command names is looked for.
        const answer =
          (await findAnswer(deps.db, keyed)) ??
          (await acceptSettlement(
            deps,
            {
              ...keyed,
              ...(await inputsOf(deps, orgId, body)),
              requestId: request.id,
              origin: 'consumer',
              recipientId: body.recipient_id,
              purpose: null,
              reference: body.reference ?? null,
              metadata: {},
              paymentToken: body.card_token ?? body.banklink_account_token ?? null,
            },
            { status: 201, present: acceptedTransfer },
          ));
        return sendAccepted(
          reply,
          answer,
          `/consumer/transfers/${Named.parse(JSON.parse(answer.body.toString())).transfer_id}`,
        );
      },
    );

    app.get(
      '/consumer/transfers',
      {
        config: { access: { auth: 'session' } },
        schema: {
          tags: TAGS,
          operationId: 'listTransfers',
          summary: 'List the transfers',
          headers: SessionHeader,
          response: { 200: listOf(TransferResponse) },
        },
      },
      async (request, reply) => {
        const { items, total } = await listSettlements(deps.db, consumerOf(request).orgId, {
          limit: CONSUMER_LIST_MAX,
          offset: 0,
        });
        return answerList(reply, { items: await detailTransfers(deps, items), total });
      },
    );

    app.get(
      '/consumer/transfers/:transfer_id',
      {
        config: { access: { auth: 'session', refusals: ['not_found'], headers: READ_HEADERS } },
        schema: {
          tags: TAGS,
          operationId: 'getTransfer',
          summary: 'Read a transfer',
          headers: SessionHeader,
          params: TransferPath,
          response: { 200: TransferResponse },
        },
      },
      async (request, reply) =>
        sendTransfer(deps, reply, await getTransfer(deps.db, consumerOf(request).orgId, request.params.transfer_id)),
    );
  };

const Named = TransferResponse.pick({ transfer_id: true });

/**
 * The four fields as they were given, or as the quote has them.
 *
 * @throws DomainError `not_found` for a quote that is not the consumer's
 * @throws ValidationError when the payer's token does not go with the quote's method
 */
async function inputsOf(
  deps: ApiDeps,
  orgId: string,
  body: z.output<typeof TransferBody>,
): Promise<PricingInput<InputMethod>> {
  const { quote_id: quoteId, corridor, amount, payment_method: paymentMethod, payout_rail: payoutRail } = body;
  if (corridor !== undefined && amount !== undefined && paymentMethod !== undefined)
    return { corridor, amount, paymentMethod, payoutRail };
  const inputs = quoteInputs(await getQuote(deps.db, orgId, quoteId ?? ''));
  const payment = QuotedPayment.safeParse({ ...body, payment_method: inputs.paymentMethod }, { reportInput: true });
  if (!payment.success) throw new ValidationError(payment.error.issues.flatMap((issue) => faultsOf(issue, 'body')));
  return inputs;
}

const transferOf = <Detail extends object>(settlement: Settlement, detail: Detail) => ({
  transfer_id: transferIdOf(settlement),
  ...detail,
});

/** A transfer as it is accepted: the read of a settlement to which nothing has happened yet. */
function acceptedTransfer(settlement: Settlement) {
  const first = {
    sequence: settlement.version,
    from: null,
    to: settlement.status,
    at: settlement.createdAt,
    reason: null,
    evidenceId: null,
  };
  return transferOf(settlement, settlementDetail(settlement, { transitions: [first], exceptions: [] }));
}

/** Sends a transfer as read; `Retry-After` while it is under way. */
async function sendTransfer(deps: ApiDeps, reply: FastifyReply, settlement: Settlement): Promise<FastifyReply> {
  const [transfer] = await detailTransfers(deps, [settlement]);
  if (!isTerminal(settlement.status)) reply.header('Retry-After', String(POLL_SECONDS));
  return reply.send(transfer);
}

async function detailTransfers(deps: ApiDeps, settlements: readonly Settlement[]) {
  const details = await detailSettlements(deps.db, settlements);
  return settlements.flatMap((settlement, index) =>
    details.slice(index, index + 1).map((detail) => transferOf(settlement, detail)),
  );
}
