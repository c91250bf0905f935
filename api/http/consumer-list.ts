/** The consumer's lists have no pages (specification): the newest objects up to a limit, and how many there are. */
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { CONSUMER_LIST_MAX } from '../../domain/consumer.ts';
import type { Paged } from '../../domain/page.ts';

/** The response of a list route in its schema, header included. */
export const listOf = <Item extends z.ZodType>(item: Item) => ({
  description: `Newest first, ${CONSUMER_LIST_MAX} at most.`,
  headers: { 'X-Total-Count': { type: 'integer', description: 'How many objects there are, listed or not.' } },
  content: { 'application/json': { schema: z.array(item) } },
});

export function answerList<T>(reply: FastifyReply, { items, total }: Paged<T>): T[] {
  reply.header('X-Total-Count', String(total));
  return [...items];
}
