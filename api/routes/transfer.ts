/** A consumer's transfers (contract §12): settlements of the consumer's own organization, with ids of their own. */
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import type { z } from 'zod';
import type { Database } from '../../db/client.ts';
import { acceptSettlement } from '../../db/commands/acceptance.ts';
import { cancelSettlement } from '../../db/commands/settlement.ts';
import { findAnswer } from '../../db/queries/idempotency-key.ts';
import { getQuote } from '../../db/queries/quote.ts';
import { listSettlementsWithHistory } from '../../db/queries/settlement-history.ts';
import { transferIdOf } from '../../db/queries/transfer.ts';
import { CONSUMER_LIST_MAX } from '../../domain/consumer.ts';
import type { PayeeResource } from '../../domain/payee.ts';
import type { InputMethod } from '../../domain/payment-method.ts';
import { type PricingInput, price } from '../../domain/pricing.ts';
import { quoteInputs } from '../../domain/quote.ts';
import { type SettlementWithHistory, settlementDetail } from '../../domain/resource/settlement.ts';
import type { Settlement } from '../../domain/settlement/state.ts';
import type { ApiDeps } from '../deps.ts';
import { ACCEPTS_SETTLEMENT, settlementCommand } from '../http/acceptance.ts';
import { sendAnswer } from '../http/idempotent-answer.ts';
import { answerPage, newestOf } from '../http/pagination.ts';
import { READ_HEADERS, sendRead, UNCHANGED } from '../http/pending-read.ts';
import type { WaitingRead } from '../http/prefer-wait.ts';
import { InvalidRequestError } from '../http/request-fault.ts';
import { findTransfer } from '../http/transfer.ts';
import { faultsOfIssues } from '../http/validation.ts';
import { consumerOf } from '../route-config.ts';
import { SessionHeader } from '../schemas/session.ts';
import { SettlementPreferences } from '../schemas/settlement.ts';
import { QuotedPayment, TransferBody, TransferHeaders, TransferPath, TransferResponse } from '../schemas/transfer.ts';

const TAGS = ['Consumer'];

export const transferRoutes =
  (deps: ApiDeps, readWaiting: WaitingRead): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/consumer/transfers',
      {
        config: { access: { auth: 'session', ...ACCEPTS_SETTLEMENT } },
        schema: {
          tags: TAGS,
          operationId: 'createTransfer',
          summary: 'Send money',
          description: 'Local-sandbox simulation. Rate and fees are those of acceptance, even with a quote.',
          headers: TransferHeaders,
          body: TransferBody,
          response: { 201: TransferResponse },
        },
      },
      async (request, reply) => {
        const { priced, ...body } = request.body;
        const { orgId } = consumerOf(request);
        const command = settlementCommand(request, { orgId, idempotencyKey: request.headers['idempotency-key'] }, body);
        // A bound key is answered before the quote is looked up.
        const answer =
          (await findAnswer(deps, command)) ??
          (await acceptSettlement(
            deps,
            { ...command, origin: 'consumer', priced: priced ?? price(await quotedInput(deps, orgId, body)) },
            { status: 201, showsPayee: true, present: acceptedTransfer },
          ));
        return sendAnswer(reply, answer, `/consumer/transfers/${transferIdIn(answer.body)}`);
      },
    );

    app.get(
      '/consumer/transfers',
      {
        config: { access: { auth: 'session', isLowPriority: true } },
        schema: {
          tags: TAGS,
          operationId: 'listTransfers',
          summary: 'List the transfers',
          headers: SessionHeader,
          response: { 200: newestOf(TransferResponse, CONSUMER_LIST_MAX) },
        },
      },
      async (request, reply) => {
        const page = { limit: CONSUMER_LIST_MAX, offset: 0 };
        const { orgId } = consumerOf(request);
        const list = (db: Database) => listSettlementsWithHistory({ ...deps, db }, orgId, { selection: {}, page });
        const read = async () => ({ ...(await deps.readList(list)), next: null });
        return answerPage(request, reply, { page, read, show: transferDetail });
      },
    );

    app.get(
      '/consumer/transfers/:transfer_id',
      {
        config: {
          access: { auth: 'session', refusals: ['not_found'], headers: [...READ_HEADERS, 'Preference-Applied'] },
        },
        schema: {
          tags: TAGS,
          operationId: 'getTransfer',
          summary: 'Read a transfer',
          headers: SettlementPreferences.extend(SessionHeader.shape),
          params: TransferPath,
          response: { 200: TransferResponse, ...UNCHANGED },
        },
      },
      async (request, reply) => {
        const { orgId } = consumerOf(request);
        const read = () => findTransfer(deps, request, orgId);
        return await readWaiting(request, reply, { orgId, read, show: transferDetail });
      },
    );

    app.post(
      '/consumer/transfers/:transfer_id/cancel',
      {
        config: { access: { auth: 'session', refusals: ['not_found', 'state_conflict'], headers: READ_HEADERS } },
        schema: {
          tags: TAGS,
          operationId: 'cancelTransfer',
          summary: 'Cancel a transfer that is not yet funded',
          headers: SessionHeader,
          params: TransferPath,
          response: { 200: TransferResponse },
        },
      },
      async (request, reply) => {
        const { orgId } = consumerOf(request);
        const { settlementId } = await findTransfer(deps, request, orgId);
        await cancelSettlement(deps, orgId, settlementId, request.id);
        const canceled = await findTransfer(deps, request, orgId);
        return sendRead(request, reply, canceled, transferDetail(canceled));
      },
    );
  };

const NamedTransfer = TransferResponse.pick({ transfer_id: true });

const transferIdIn = (body: Buffer): string => NamedTransfer.parse(JSON.parse(body.toString())).transfer_id;

/**
 * The input of the price: that of the quote that the body names.
 *
 * @throws DomainError `not_found` for a quote that is not the consumer's
 * @throws InvalidRequestError when the payer's token does not match the payment method of the quote
 */
async function quotedInput(
  deps: ApiDeps,
  orgId: string,
  body: Omit<z.output<typeof TransferBody>, 'priced'>,
): Promise<PricingInput<InputMethod>> {
  const input = quoteInputs(await getQuote(deps.db, orgId, body.quote_id ?? ''));
  const payment = QuotedPayment.safeParse({ ...body, payment_method: input.paymentMethod }, { reportInput: true });
  if (!payment.success) throw new InvalidRequestError(faultsOfIssues(payment.error.issues, 'body'));
  return input;
}

function transferDetail(settlement: SettlementWithHistory) {
  const { metadata: _metadata, ...detail } = settlementDetail(settlement);
  return { transfer_id: transferIdOf(settlement), ...detail };
}

/** A transfer as it is accepted: as a read would show it before the first change. */
function acceptedTransfer(settlement: Settlement, payee: PayeeResource) {
  const accepted = {
    sequence: settlement.version,
    from: null,
    to: settlement.status,
    at: settlement.createdAt,
    reason: null,
    evidenceId: null,
  };
  return transferDetail({ transitions: [accepted], exceptions: [], payee, ...settlement });
}
