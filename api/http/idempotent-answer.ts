/**
 * Commands that take an Idempotency-Key (contract §6): what their key is bound to, and how their stored answer is sent.
 * The first answer and every replay are the same bytes.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { isSettlementId } from '../../db/id.ts';
import { type Answer, fingerprintOf, type KeyedRequest } from '../../db/queries/idempotency-key.ts';
import type { RouteConfig } from '../route-config.ts';

/** The headers that the acceptance of a settlement sends, as a route declares them. */
export const ACCEPTED_HEADERS = ['Location', 'Idempotency-Replayed'] as const;

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

/** What a creation binds its key to; undefined for a request without one. The ids in the path belong to the request. */
export function keyedRequest(request: FastifyRequest, orgId: string): KeyedRequest | undefined {
  const idempotencyKey = request.headers['idempotency-key'];
  if (typeof idempotencyKey !== 'string') return undefined;
  const params = z.record(z.string(), z.string()).parse(request.params);
  const fields = z.record(z.string(), z.unknown()).catch({}).parse(request.body);
  const route = [request.routeOptions.url ?? '', ...Object.values(params)].join('\0');
  const { method, rawBody: bytes } = request;
  return { orgId, idempotencyKey, fingerprint: fingerprintOf({ method, route, bytes, fields }) };
}

/** What every route that creates something with an optional key declares. */
export const CREATES = {
  refusals: ['idempotency_key_reused', 'quota_exceeded'],
  headers: ['Idempotency-Replayed'],
} as const satisfies Partial<RouteConfig>;

/** Sends the stored bytes, so that every answer to one key is the same. */
export function sendAnswer(reply: FastifyReply, answer: Answer, location?: string): FastifyReply {
  if (isSettlementId(answer.resourceId)) reply.request.subjectId = answer.resourceId;
  if (answer.replayed) reply.header('Idempotency-Replayed', 'true');
  if (location !== undefined) reply.header('Location', location);
  return reply.code(answer.status).type('application/json; charset=utf-8').send(answer.body);
}
