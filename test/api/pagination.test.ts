import fc from 'fast-check';
import fastify from 'fastify';
import { describe, expect, test } from 'vitest';
import { answerPage, pageLinks } from '../../api/http/pagination.ts';
import { type Cursor, cursorText, PAGE, parseCursor } from '../../domain/page.ts';
import { property } from '../support/property.ts';

const LINK = /<([^>]+)>; rel="(next|prev)"/g;
const linked = (links: string, parameter: string): Record<string, string | null> =>
  Object.fromEntries(
    [...links.matchAll(LINK)].map(([, url = '', rel = '']) => [
      rel,
      new URL(url, 'http://x').searchParams.get(parameter),
    ]),
  );
const offsets = (links: string) => linked(links, 'offset');

const LAST: Cursor = { at: new Date('2026-11-21T08:00:00.123Z'), id: 'stl_3nqh5w6zsv4y2m7k4d6a5c2b7e4f3g2h' };
const more = (total: number | null) => ({ total, next: LAST });
const noMore = (total: number | null) => ({ total, next: null });

/** Answers a page of 20 objects, each of which takes so long. @returns how often other work got its turn meanwhile */
async function turnsDuringPage(itemMs: number): Promise<number> {
  const items = Array.from({ length: 20 }, (_, id) => ({ id }));
  let turns = 0;
  let shown = 0;
  const countTurn = (): void => {
    turns += 1;
    if (shown < items.length) setImmediate(countTurn);
  };
  const show = (row: { readonly id: number }) => {
    if (shown === 0) setImmediate(countTurn);
    shown += 1;
    const sinceMs = performance.now();
    while (performance.now() - sinceMs < itemMs);
    return row;
  };
  const app = fastify();
  const schema = { type: 'array', items: { type: 'object', properties: { id: { type: 'integer' } } } };
  const response = { 200: { content: { 'application/json': { schema } } } };
  app.get('/', { schema: { response } }, (request, reply) => {
    const read = async () => ({ items, total: items.length, next: null });
    return answerPage(request, reply, { page: { limit: items.length, offset: 0 }, read, show });
  });
  const answer = await app.inject('/');
  expect(answer.json()).toEqual(items);
  expect(answer.headers).toMatchObject({ 'content-type': 'application/json; charset=utf-8', 'x-total-count': '20' });
  return turns;
}

test('other work gets its turn while the objects of a page take long, and the page is one array', async () =>
  expect(await turnsDuringPage(2)).toBeGreaterThanOrEqual(3));

describe('the links of a page', () => {
  test('none when all objects are on the page', () =>
    expect(pageLinks('/v1/recipients', { limit: 50, offset: 0 }, noMore(50))).toBe(''));
  test('none for an empty list, at any offset', () =>
    expect(pageLinks('/v1/recipients?offset=100', { limit: 50, offset: 100 }, noMore(0))).toBe(''));

  test('a caller that gives no offset gets a cursor, and its parameters stay', () => {
    expect(pageLinks('/v2/settlements?status=funded&status=settled', { limit: 50, offset: 0 }, more(51))).toBe(
      `</v2/settlements?status=funded&status=settled&after=${cursorText(LAST)}>; rel="next"`,
    );
  });

  test('the cursor of the next page replaces the cursor of this page', () => {
    const page = { limit: 2, offset: 0, after: LAST };
    expect(pageLinks('/v1/events?limit=2&after=old', page, more(null))).toBe(
      `</v1/events?limit=2&after=${cursorText(LAST)}>; rel="next"`,
    );
  });

  test('a caller that pages by offset gets offsets; path and every other parameter stay', () => {
    expect(
      pageLinks(
        '/v1/webhooks/w%20x/deliveries?status=pending&limit=2&offset=4&note=%3E%3B%22',
        { limit: 2, offset: 4 },
        more(9),
      ),
    ).toBe(
      [
        '</v1/webhooks/w%20x/deliveries?status=pending&limit=2&offset=6&note=%3E%3B%22>; rel="next"',
        '</v1/webhooks/w%20x/deliveries?status=pending&limit=2&offset=2&note=%3E%3B%22>; rel="prev"',
      ].join(', '),
    );
  });

  test('have no limit if the request has none: a CSV page has more lines than a limit may say', () => {
    expect(pageLinks('/v2/settlements?offset=10000', { limit: 10_000, offset: 10_000 }, more(null))).toBe(
      '</v2/settlements?offset=20000>; rel="next", </v2/settlements?offset=0>; rel="prev"',
    );
  });

  test('a cursor is followed by a cursor, also with an offset of 0', () => {
    const page = { limit: 2, offset: 0, after: LAST };
    expect(pageLinks('/v1/events?limit=2&offset=0&after=old', page, more(null))).toBe(
      `</v1/events?limit=2&after=${cursorText(LAST)}>; rel="next"`,
    );
  });

  test('past the end, prev is the last page with objects', () =>
    expect(offsets(pageLinks('/x?offset=1000', { limit: 2, offset: 1_000 }, noMore(5)))).toEqual({ prev: '3' }));

  test('prev never starts below zero', () =>
    expect(offsets(pageLinks('/x?offset=10', { limit: 50, offset: 10 }, noMore(20)))).toEqual({ prev: '0' }));

  test('exist although the matches are more than are counted', () =>
    expect(offsets(pageLinks('/x?offset=100', { limit: 50, offset: 100 }, more(null)))).toEqual({
      next: '150',
      prev: '50',
    }));

  test('lead to every object: past the largest offset, a cursor follows', () => {
    const last = PAGE.offsetMax - 100;
    expect(offsets(pageLinks(`/x?offset=${last}`, { limit: 100, offset: last }, more(null)))).toMatchObject({
      next: String(PAGE.offsetMax),
    });
    const page = { limit: 100, offset: PAGE.offsetMax };
    expect(pageLinks(`/x?limit=100&offset=${PAGE.offsetMax}&status=settled`, page, more(null))).toBe(
      [
        `</x?limit=100&status=settled&after=${cursorText(LAST)}>; rel="next"`,
        `</x?limit=100&offset=${PAGE.offsetMax - 100}&status=settled>; rel="prev"`,
      ].join(', '),
    );
    expect(pageLinks(`/x?offset=${PAGE.offsetMax}`, page, noMore(null))).not.toContain('next');
  });

  property([fc.integer({ min: 1, max: 100 }), fc.nat({ max: 1_000 })])(
    'following next shows each object once, and following prev leads back to the start',
    (limit, total) => {
      const linksAt = (offset: number) =>
        pageLinks(`/x?offset=${offset}`, { limit, offset }, { total, next: offset + limit < total ? LAST : null });
      const seen: number[] = [];
      let offset: number | undefined = 0;
      let last = 0;
      while (offset !== undefined) {
        for (let index = offset; index < Math.min(offset + limit, total); index += 1) seen.push(index);
        last = offset;
        const next: string | null | undefined = offsets(linksAt(offset))['next'];
        offset = next ? Number(next) : undefined;
      }
      expect(seen).toEqual([...Array(total).keys()]);
      while (last > 0) last = Number(offsets(linksAt(last))['prev'] ?? Number.NaN);
      expect(last).toBe(0);
    },
  );
});

describe('a cursor', () => {
  const ids = fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/);
  const moments = fc.date({ min: new Date(0), max: new Date('9999-12-31T00:00:00.000Z'), noInvalidDate: true });

  property([moments, ids])('is the same after it was written and read', (at, id) => {
    expect(parseCursor(cursorText({ at, id }))).toEqual({ at, id });
  });

  test.each(['', '-', 'x', '1', 'zzzzzzzzzzz-a', "1-a'b", '1-', '-a', `1-${'a'.repeat(65)}`, '1-ä'])(
    '%j is none',
    (value) => expect(parseCursor(value)).toBeUndefined(),
  );
});
