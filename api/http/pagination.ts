/**
 * Lists answer a plain JSON array. The headers hold the number of all objects and the links to the next and the
 * previous page (contract §1). Links are relative references (RFC 8288, RFC 3986), which are correct behind every
 * proxy.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { PAGE, type Page, type Paged } from '../../domain/page.ts';

/** JSON schemas, which the generator of the OpenAPI document turns into header objects. */
const PAGE_HEADERS = {
  'X-Total-Count': { type: 'integer', description: 'The number of objects in all pages.' },
  Link: { type: 'string', description: 'RFC 8288 links to the next and the previous page, if they exist.' },
} as const;

/** The response of a list route for its schema, with its headers. */
export const pageOf = <Item extends z.ZodType>(item: Item, description: string) => ({
  description,
  headers: PAGE_HEADERS,
  content: { 'application/json': { schema: z.array(item) } },
});

/** Sets the headers of a page and returns its items, which are the whole body. */
export function answerPage<T>(
  request: FastifyRequest,
  reply: FastifyReply,
  page: Page,
  { items, total }: Paged<T>,
): T[] {
  reply.header('X-Total-Count', String(total));
  const links = pageLinks(request.url, page, total);
  if (links !== '') reply.header('Link', links);
  return [...items];
}

/**
 * The value of `Link` for one page of the list at `url`. Other query parameters are kept. Empty if there is no other
 * page.
 */
export function pageLinks(url: string, { limit, offset }: Page, total: number): string {
  const link = (rel: string, target: number) => `<${withPage(url, limit, target)}>; rel="${rel}"`;
  const next = offset + limit;
  const links: string[] = [];
  if (next < total && next <= PAGE.offsetMax) links.push(link('next', next));
  // An offset behind the last object leads back to the last page that has objects.
  if (offset > 0 && total > 0) links.push(link('prev', Math.max(0, Math.min(offset, total) - limit)));
  return links.join(', ');
}

function withPage(url: string, limit: number, offset: number): string {
  const [path = '', query] = url.split('?', 2);
  const parameters = new URLSearchParams(query);
  parameters.set('limit', String(limit));
  parameters.set('offset', String(offset));
  return `${path}?${parameters}`;
}
