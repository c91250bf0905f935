import { fc, test as property } from '@fast-check/vitest';
import { describe, expect, test } from 'vitest';
import { pageLinks } from '../../api/http/pagination.ts';
import { PAGE } from '../../domain/page.ts';

const LINK = /<([^>]+)>; rel="(next|prev)"/g;
const offsets = (links: string) =>
  Object.fromEntries(
    [...links.matchAll(LINK)].map(([, url = '', rel = '']) => [
      rel,
      Number(new URL(url, 'http://x').searchParams.get('offset')),
    ]),
  );

describe('the links of a page', () => {
  test('none when all objects are on the page', () =>
    expect(pageLinks('/v1/recipients', { limit: 50, offset: 0 }, 50)).toBe(''));
  test('none for an empty list, at any offset', () =>
    expect(pageLinks('/v1/recipients', { limit: 50, offset: 100 }, 0)).toBe(''));

  test('are relative references that keep the path and every other parameter', () => {
    expect(
      pageLinks(
        '/v1/webhooks/w%20x/deliveries?status=pending&limit=2&offset=4&note=%3E%3B%22',
        { limit: 2, offset: 4 },
        9,
      ),
    ).toBe(
      [
        '</v1/webhooks/w%20x/deliveries?status=pending&limit=2&offset=6&note=%3E%3B%22>; rel="next"',
        '</v1/webhooks/w%20x/deliveries?status=pending&limit=2&offset=2&note=%3E%3B%22>; rel="prev"',
      ].join(', '),
    );
  });

  test('have limit and offset even if the request has not', () => {
    expect(pageLinks('/v1/recipients', { limit: 50, offset: 0 }, 51)).toBe(
      '</v1/recipients?limit=50&offset=50>; rel="next"',
    );
  });

  test('past the end, prev is the last page with objects', () =>
    expect(offsets(pageLinks('/x', { limit: 2, offset: 1_000 }, 5))).toEqual({ prev: 3 }));

  test('prev never starts below zero', () =>
    expect(offsets(pageLinks('/x', { limit: 50, offset: 10 }, 20))).toEqual({ prev: 0 }));

  test('next is missing past the largest offset', () => {
    expect(offsets(pageLinks('/x', { limit: 100, offset: PAGE.offsetMax }, PAGE.offsetMax + 500))).toEqual({
      prev: PAGE.offsetMax - 100,
    });
  });

  property.prop([fc.integer({ min: 1, max: 100 }), fc.nat({ max: 1_000 })])(
    'following next shows each object once, and following prev leads back to the start',
    (limit, total) => {
      const seen: number[] = [];
      let offset: number | undefined = 0;
      let last = 0;
      while (offset !== undefined) {
        for (let index = offset; index < Math.min(offset + limit, total); index += 1) seen.push(index);
        last = offset;
        offset = offsets(pageLinks('/x', { limit, offset }, total))['next'];
      }
      expect(seen).toEqual([...Array(total).keys()]);
      while (last > 0) last = offsets(pageLinks('/x', { limit, offset: last }, total))['prev'] ?? Number.NaN;
      expect(last).toBe(0);
    },
  );
});
