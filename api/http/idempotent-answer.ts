/**
 * Commands that take an Idempotency-Key (contract §6): what their key is bound to, and how their stored answer is sent.
 * The first answer and every replay are the same bytes.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Answer, fingerprintOf } from '../../db/queries/idempotency-key.ts';
import type { RouteConfig } from '../route-config.ts';

/** The headers that `sendAccepted` sends, as a route declares them. */
export const ACCEPTED_HEADERS = ['Location', 'Idempotency-Replayed'] as const;

/** What every route that accepts a settlement declares. */
export const ACCEPTS_SETTLEMENT = {
  remote: 'launch_gates_closed',
  refusals: ['not_found', 'idempotency_key_reused', 'state_conflict'],
  headers: ACCEPTED_HEADERS,
} as const satisfies Partial<RouteConfig>;

/**
 * What the request's idempotency key is bound to: method, route and exact bytes.
 *
 * @param fields the fields of the body, by which a refusal names the differences
 */
export const commandFingerprint = (request: FastifyRequest, fields: Readonly<Record<string, unknown>>) =>
  fingerprintOf({
    method: request.method,
    route: request.routeOptions.url ?? '',
    bytes: request.rawBody,
    fields,
  });

/** Sends the stored bytes, so that every answer to one key is the same. */
export function sendAccepted(
  reply: FastifyReply,
  answer: Pick<Answer, 'status' | 'body' | 'replayed'>,
  location: string,
): FastifyReply {
  if (answer.replayed) reply.header('Idempotency-Replayed', 'true');
  return reply
    .code(answer.status)
    .header('Location', location)
    .type('application/json; charset=utf-8')
    .send(answer.body);
}
