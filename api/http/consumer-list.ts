/**
 * Lists of the consumer API. They have no pages (specification): a list shows the newest objects and their whole
 * number.
 */
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { CONSUMER_LIST_MAX } from '../../domain/consumer.ts';
import type { Page, Paged } from '../../domain/page.ts';

/** What a list shows: the newest objects. */
export const CONSUMER_PAGE: Page = { limit: CONSUMER_LIST_MAX, offset: 0 };

/** The response of a list route for its schema, with its header. */
export const listOf = <Item extends z.ZodType>(item: Item) => ({
  description: `Newest first, at most ${CONSUMER_LIST_MAX}.`,
  headers: {
    'X-Total-Count': { type: 'integer', description: 'The number of objects, including those that are not listed.' },
  },
  content: { 'application/json': { schema: z.array(item) } },
});

/** Sets the header of a list and returns the items, which are the whole body. */
export function answerList<T>(reply: FastifyReply, { items, total }: Paged<T>): T[] {
  reply.header('X-Total-Count', String(total));
  return [...items];
}
