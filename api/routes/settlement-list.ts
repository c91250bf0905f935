/** The organization's settlements, whichever route made them, under two names (contract §1, §6). */
import type { FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { z } from 'zod';
import { exportSettlements, listSettlementsWithHistory } from '../../db/queries/settlement-history.ts';
import { EXPORT_LINES_MAX } from '../../domain/page.ts';
import { type SettlementWithHistory, settlementDetail } from '../../domain/resource/settlement.ts';
import { SETTLEMENT_COLUMNS, settlementLine } from '../../domain/resource/settlement-line.ts';
import type { ApiDeps } from '../deps.ts';
import { csvLine } from '../http/csv.ts';
import { answerPage, pageOf, setPageHeaders, writeItems } from '../http/pagination.ts';
import { splitAddress } from '../http/query-string.ts';
import { preferredType } from '../pages/negotiation.ts';
import { principalOf } from '../route-config.ts';
import { SettlementQuery, SettlementResponse } from '../schemas/settlement.ts';

const LISTS = [
  { url: '/v2/settlements', tag: 'Settlement', operationId: 'listSettlements' },
  { url: '/v1/caribbean/settlements', tag: 'Caribbean off-ramp', operationId: 'listCaribbeanSettlements' },
] as const;

/** The forms of a list, the default first. */
const TYPES = ['application/json', 'text/csv'] as const;

const hasLimit = ({ url }: FastifyRequest): boolean => new URLSearchParams(splitAddress(url).query).has('limit');

function lineOf(settlement: SettlementWithHistory): string {
  const line = settlementLine(settlement);
  return csvLine(SETTLEMENT_COLUMNS.map((column) => line[column]));
}

/** The response of a list that is also a table. */
const pageOrTable = <Page extends { readonly headers: object; readonly content: object }>(page: Page) => ({
  ...page,
  headers: {
    ...page.headers,
    Vary: { type: 'string', description: '`Accept`: the answer depends on it.' },
    'Content-Disposition': { type: 'string', description: 'A name for the file, with CSV.' },
  },
  content: {
    ...page.content,
    'text/csv': { schema: z.string().meta({ description: 'RFC 4180, UTF-8.', example: SETTLEMENT_COLUMNS.join(',') }) },
  },
});

export const settlementListRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    for (const { url, tag, operationId } of LISTS) {
      app.get(
        url,
        {
          config: { access: { auth: 'api_key', scope: 'read', isLowPriority: true } },
          schema: {
            tags: [tag],
            operationId,
            summary: "List the organization's settlements, newest first",
            description:
              'Every filter that is given must match. With `Accept: text/csv` the answer is a table: a line with the ' +
              `names of the columns, then one line for each settlement, up to ${EXPORT_LINES_MAX} without a \`limit\`. A ` +
              'text that a spreadsheet would take for a formula begins with a quote.',
            querystring: SettlementQuery,
            response: { 200: pageOrTable(pageOf(SettlementResponse, 'One page of settlements.')) },
          },
        },
        async (request, reply) => {
          const { limit, offset, after, ...filters } = request.query;
          const page = { limit, offset, after };
          const { orgId } = principalOf(request);
          const selection = {
            statuses: filters.status,
            corridor: filters.corridor,
            paymentMethod: filters.payment_method,
            recipientId: filters.recipient_id,
            reference: filters.reference,
            createdFrom: filters.created_from,
            createdTo: filters.created_to,
            metadata: filters.metadata,
          };
          reply.header('Vary', 'Accept');
          if (preferredType(request.headers.accept, TYPES) === 'text/csv') {
            const table = { ...page, limit: hasLimit(request) ? limit : EXPORT_LINES_MAX };
            const paged = await deps.readList((db) =>
              exportSettlements({ ...deps, db }, orgId, {
                selection,
                page: table,
                betweenSteps: () => request.nextTurn(),
              }),
            );
            const parts = await writeItems(paged.items, (items) => items.map(lineOf).join(''));
            setPageHeaders(request, reply, table, paged);
            return reply
              .header('Content-Disposition', 'attachment; filename="settlements.csv"')
              .type('text/csv; charset=utf-8')
              .send(`${csvLine(SETTLEMENT_COLUMNS)}${parts.join('')}`);
          }
          const read = () =>
            deps.readList((db) => listSettlementsWithHistory({ ...deps, db }, orgId, { selection, page }));
          return answerPage(request, reply, { page, read, show: settlementDetail });
        },
      );
    }
  };
