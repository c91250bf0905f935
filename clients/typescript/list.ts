/** Lists over all pages, by the cursor of `Link` (contract §1). Pages are read only as far as you iterate. */
import { UnexpectedAnswer } from './error.ts';
import { type CallOptions, filledPath, queryText, type RawAnswer, type Send, withJson } from './transport.ts';

export type Page<T> = {
  readonly items: readonly T[];
  /** Of all pages; undefined above 10 000. */
  readonly totalCount: number | undefined;
};

/** `for await (const one of list)` reads page after page, newest first. */
export type List<T> = AsyncIterable<T> & {
  /** The same, page by page. */
  pages(): AsyncIterable<Page<T>>;
  /** The first items, at most so many. */
  first(count: number): Promise<T[]>;
};

const NEXT = /<([^>]*)>;\s*rel="next"/;

/** The query of the next page, from `Link`. Only the query counts: the request goes to where the first one went. */
function nextQuery({ headers }: RawAnswer): object | undefined {
  const reference = NEXT.exec(headers.get('Link') ?? '')?.[1];
  if (reference === undefined) return undefined;
  const all = new URL(reference, 'http://any.invalid').searchParams;
  return Object.fromEntries([...new Set(all.keys())].map((name) => [name, all.getAll(name)]));
}

export function createList<T>(
  send: Send,
  path: string,
  { values, query, ...options }: CallOptions & { readonly values?: object; readonly query?: object | undefined } = {},
): List<T> {
  async function* pages(): AsyncGenerator<Page<T>> {
    for (let asked: object | undefined = query ?? {}; asked !== undefined; ) {
      const answer = await send({
        method: 'GET',
        path: filledPath(path, values),
        query: asked,
        isRepeatable: true,
        ...options,
      });
      const next = nextQuery(answer);
      const { data } = withJson<T[]>(answer);
      // A cache that ignores the query answers this page to each request: the list would not end.
      const isRepeated = next !== undefined && queryText(next) === queryText(asked);
      if (isRepeated || !Array.isArray(data)) throw new UnexpectedAnswer(answer.status);
      const total = answer.headers.get('X-Total-Count');
      yield { items: data, totalCount: total === null ? undefined : Number(total) };
      asked = next;
    }
  }
  async function* items(): AsyncGenerator<T> {
    for await (const page of pages()) yield* page.items;
  }
  return {
    pages,
    [Symbol.asyncIterator]: items,
    first: async (count) => {
      const taken: T[] = [];
      if (count < 1) return taken;
      for await (const item of items()) {
        taken.push(item);
        if (taken.length >= count) break;
      }
      return taken;
    },
  };
}
