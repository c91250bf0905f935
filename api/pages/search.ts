/** Search in guides, operations, events and problems, without a script. What is found is ranked: titles first. */
import { html } from 'ghtml';
import type { OpenAPIV3_1 } from 'openapi-types';
import { ERROR_CODES, ERROR_TEXT } from '../../domain/error.ts';
import { sectionId } from '../../domain/failure-help.ts';
import { GUIDES, guidePath, readGuide } from './guide.ts';
import { type Frame, document as pageOf, QUERY_LENGTH_MAX, searchForm } from './layout.ts';
import { describedOf, eventAddress, operationAddress } from './reference.ts';

const FOUND_MAX = 30;
const EXCERPT_LENGTH = 160;
const TITLE_SCORE = 20;
const COUNTED_MAX = 8;
/** Different words of a query. Every text is searched for each of them. */
const WORDS_MAX = 8;

/** Something to find. `text` is searched too. */
type Entry = { readonly kind: string; readonly title: string; readonly address: string; readonly text: string };

/** An entry, with its title and its text in lower case. */
type Searched = { readonly entry: Entry; readonly title: string; readonly text: string };

async function guideEntries(): Promise<Entry[]> {
  const sections = GUIDES.map(async ({ name, title }) => {
    const [first = '', ...others] = ((await readGuide(name)) ?? '').split(/^#{2,3} /m);
    return [
      { kind: 'Guide', title, address: guidePath(name), text: first },
      ...others.map((section) => {
        const [line = ''] = section.split('\n');
        const address = `${guidePath(name)}#${sectionId(line)}`;
        const text = section.slice(line.length);
        return { kind: 'Guide', title: `${title}: ${line.replaceAll('`', '')}`, address, text };
      }),
    ];
  });
  return (await Promise.all(sections)).flat();
}

const operationEntries = (document: OpenAPIV3_1.Document): Entry[] =>
  describedOf(document).map((operation) => ({
    kind: 'Operation',
    title: operation.summary ?? '',
    address: operationAddress(operation),
    text: [
      `${operation.method} ${operation.path}. ${operation.description ?? ''}`,
      ...(operation.parameters ?? []).flatMap((parameter) =>
        'in' in parameter ? [`${parameter.name}: ${parameter.description ?? ''}`] : [],
      ),
    ].join(' '),
  }));

const eventEntries = (document: OpenAPIV3_1.Document): Entry[] =>
  Object.entries(document.webhooks ?? {}).map(([type, item]) => ({
    kind: 'Event',
    title: type,
    address: eventAddress(type),
    text: ('post' in item && item.post?.summary) || '',
  }));

const PROBLEMS: readonly Entry[] = ERROR_CODES.map((code) => ({
  kind: 'Problem',
  title: `${ERROR_TEXT[code].title} (${code})`,
  address: `/problems/${code}`,
  text: ERROR_TEXT[code].detail,
}));

const wordsOf = (query: string): string[] =>
  [...new Set(query.toLowerCase().split(/\s+/))].filter((word) => word !== '').slice(0, WORDS_MAX);

/** How well an entry fits; 0 where a word is missing. */
function scoreOf({ title, text }: Searched, words: readonly string[]): number {
  const scores = words.map((word) => {
    const count = text.split(word).length - 1;
    return Math.min(count, COUNTED_MAX) + (title.includes(word) ? TITLE_SCORE : 0);
  });
  return scores.includes(0) ? 0 : scores.reduce((sum, score) => sum + score, 0);
}

const foundItem = (entry: Entry, words: readonly string[]): string => html`<div>
<dt>${entry.kind}</dt>
<dd><a href="${entry.address}">${entry.title}</a><br><span class="why">${excerpt(entry, words)}</span></dd>
</div>
`;

const foundList = (query: string, items: readonly string[]): string =>
  items.length === 0
    ? html`<p>Nothing was found for “${query}”.</p>`
    : html`<p>Found for “${query}”:</p>
<dl class="places">
!${items}
</dl>`;

/** The sentences around the first of the words. Programs and tables are searched, and not quoted. */
function excerpt({ text }: Entry, words: readonly string[]): string {
  const plain = text
    .replaceAll(/^```.*?^```$|^\|.*\|$|^!\[.*$/gms, '')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/`|\*\*|^#+ /gm, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
  const at = plain.toLowerCase().indexOf(words[0] ?? '') - EXCERPT_LENGTH / 3;
  const start = at <= 0 ? 0 : plain.indexOf(' ', at) + 1;
  const end = start + EXCERPT_LENGTH;
  const part = end >= plain.length ? plain.slice(start) : plain.slice(start, end).replace(/\s\S*$/, ' …');
  return `${start === 0 ? '' : '… '}${part}`;
}

/** Collects what can be found at the first search. */
export function createSearch(
  frame: Frame,
  readDocument: () => OpenAPIV3_1.Document,
): (query: string) => Promise<string> {
  let entries: Promise<readonly Searched[]> | undefined;
  const collect = async () => {
    const document = readDocument();
    const all = [...(await guideEntries()), ...operationEntries(document), ...eventEntries(document), ...PROBLEMS];
    return all.map((entry) => ({ entry, title: entry.title.toLowerCase(), text: entry.text.toLowerCase() }));
  };
  return async (given) => {
    const query = given.slice(0, QUERY_LENGTH_MAX).trim();
    const words = wordsOf(query);
    entries ??= collect().catch((error: unknown) => {
      // A guide that could not be read now is read at the next search.
      entries = undefined;
      throw error;
    });
    const items = (await entries)
      .map((searched) => ({ entry: searched.entry, score: words.length === 0 ? 0 : scoreOf(searched, words) }))
      .filter(({ score }) => score > 0)
      .toSorted((one, other) => other.score - one.score)
      .slice(0, FOUND_MAX)
      .map(({ entry }) => foundItem(entry, words));
    return pageOf(frame, {
      title: 'Search',
      path: '/docs/search',
      main: html`<h1>Search</h1>
!${searchForm(query)}
!${words.length === 0 ? '<p>Enter a word.</p>' : foundList(query, items)}
<p><a href="/docs">API reference</a> · <a href="/docs/quickstart">Guides</a></p>`,
    });
  };
}
