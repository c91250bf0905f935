/** Reads of a settlement that may still change (contract §6): `Retry-After` says when another read is worthwhile. */
import type { FastifyReply } from 'fastify';
import { isTerminal, type Settlement } from '../../domain/settlement.ts';

/** Seconds until another read of a pending settlement is worthwhile. */
const POLL_SECONDS = 1;

/** The headers that `sendRead` sends, as a route declares them. */
export const READ_HEADERS = ['Retry-After'] as const;

/** Sends a settlement as `shown`, with `Retry-After` until its status is terminal. */
export function sendRead(reply: FastifyReply, { status }: Pick<Settlement, 'status'>, shown: unknown): FastifyReply {
  if (!isTerminal(status)) reply.header('Retry-After', String(POLL_SECONDS));
  return reply.send(shown);
}
