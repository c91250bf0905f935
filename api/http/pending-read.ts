/** Reads of a settlement that may still change (contract §6): `Retry-After` says when another read is worthwhile. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isTerminal, type Settlement } from '../../domain/settlement/state.ts';
import { sendTagged, taggedJson } from './conditional.ts';

/** Seconds until another read of a pending settlement is worthwhile. */
const POLL_SECONDS = 1;

/** The headers that `sendRead` sends, as a route declares them. */
export const READ_HEADERS = ['Retry-After', 'ETag'] as const;

/** The answer to a caller that names the current tag, as a route declares it. */
export const UNCHANGED = { 304: { description: 'The caller has this answer already.' } } as const;

/**
 * Sends a settlement as `shown`, with `Retry-After` until its status is terminal, and with a tag of its bytes. A caller
 * that names the tag in `If-None-Match` has this answer already and gets 304.
 */
export function sendRead(
  request: FastifyRequest,
  reply: FastifyReply,
  { status }: Pick<Settlement, 'status'>,
  shown: unknown,
): FastifyReply {
  if (!isTerminal(status)) reply.header('Retry-After', String(POLL_SECONDS));
  return sendTagged(request, reply, taggedJson(shown));
}
