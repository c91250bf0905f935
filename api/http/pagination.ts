/**
 * Lists answer a plain JSON array. The headers hold the number of all objects and the links to the next and the
 * previous page (contract §1). Links are relative references (RFC 8288, RFC 3986), which are correct behind every
 * proxy.
 */
import { setImmediate } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { COUNTED_MAX, cursorText, PAGE, type Page, type Paged } from '../../domain/page.ts';
import { splitAddress } from './query-string.ts';

/** JSON schemas, which the generator of the OpenAPI document turns into header objects. */
export const PAGE_HEADERS = {
  'X-Total-Count': {
    type: 'integer',
    description: `The number of objects in all pages. Absent if there are more than ${COUNTED_MAX}.`,
  },
  Link: { type: 'string', description: 'RFC 8288 links to the next and the previous page, if they exist.' },
} as const;

/** The response of a list route for its schema, with its headers. */
export const pageOf = <Item extends z.ZodType>(item: Item, description: string) => ({
  description,
  headers: PAGE_HEADERS,
  content: { 'application/json': { schema: z.array(item) } },
});

/** The response of a list that has no pages, but only its newest objects. */
export const newestOf = <Item extends z.ZodType>(item: Item, max: number) => ({
  ...pageOf(item, `Newest first, at most ${max}.`),
  headers: { 'X-Total-Count': PAGE_HEADERS['X-Total-Count'] },
});

/** Sets the headers of a page. */
export function setPageHeaders(
  request: FastifyRequest,
  reply: FastifyReply,
  page: Page,
  paged: Omit<Paged<never>, 'items'>,
): void {
  if (paged.total !== null) reply.header('X-Total-Count', String(paged.total));
  const links = pageLinks(request.url, page, paged);
  if (links !== '') reply.header('Link', links);
}

/**
 * A page of the largest objects takes 70 ms. After every five items, other requests get their turn if the items since
 * their last turn took 2 ms.
 */
const PART = { items: 5, ms: 2 } as const;

/** Writes the items of a page in parts. When they take long, other requests get their turn in between. */
export async function writeItems<Row>(
  items: readonly Row[],
  write: (items: readonly Row[]) => string,
): Promise<readonly string[]> {
  const parts: string[] = [];
  let sinceMs = performance.now();
  for (let first = 0; first < items.length; first += PART.items) {
    if (performance.now() - sinceMs >= PART.ms) {
      await setImmediate();
      sinceMs = performance.now();
    }
    parts.push(write(items.slice(first, first + PART.items)));
  }
  return parts;
}

/** Answers a page: its items as they are shown are the whole body. */
export async function answerPage<Row>(
  request: FastifyRequest,
  reply: FastifyReply,
  {
    page,
    read,
    show,
  }: { readonly page: Page; readonly read: () => Promise<Paged<Row>>; readonly show: (row: Row) => unknown },
): Promise<FastifyReply> {
  const serialize: ((items: never) => string) | undefined = reply.getSerializationFunction('200', 'application/json');
  if (!serialize) throw new Error(`${request.routeOptions.url} has no schema of a page`);
  // Without the brackets of the array.
  const write = (items: readonly Row[]) => serialize(items.map(show) as never).slice(1, -1);
  const paged = await read();
  const parts = await writeItems(paged.items, write);
  setPageHeaders(request, reply, page, paged);
  return reply.type('application/json; charset=utf-8').send(`[${parts.join(',')}]`);
}

/**
 * The value of `Link` for one page of the list at `url`. A caller that pages by `offset` gets offsets up to the largest
 * one, and every other one a cursor. Other query parameters are kept. If the caller gave no limit, the link has none:
 * the default applies again. Empty if there is no other page.
 */
export function pageLinks(url: string, page: Page, { total, next }: Pick<Paged<unknown>, 'total' | 'next'>): string {
  const { limit, offset } = page;
  const isByOffset = page.after === undefined && new URLSearchParams(splitAddress(url).query).has('offset');
  const links: string[] = [];
  const nextOffset = offset + limit;
  if (next !== null)
    links.push(
      isByOffset && nextOffset <= PAGE.offsetMax
        ? link('next', url, { offset: nextOffset })
        : link('next', url, { after: cursorText(next) }),
    );
  // An offset after the last object leads back to the last page that has objects.
  if (offset > 0 && total !== 0)
    links.push(link('prev', url, { offset: Math.max(0, Math.min(offset, total ?? offset) - limit) }));
  return links.join(', ');
}

function link(rel: string, url: string, given: Readonly<Record<string, string | number>>): string {
  const { path, query } = splitAddress(url);
  const parameters = new URLSearchParams(query);
  if ('after' in given) parameters.delete('offset');
  for (const [name, value] of Object.entries(given)) parameters.set(name, String(value));
  return `<${path}?${parameters}>; rel="${rel}"`;
}
