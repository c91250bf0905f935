/**
 * What every page has: one heading, landmarks, the posture in words at the top, and no inline style or script. `html`
 * escapes every value without a `!` before it. A value with `!` is HTML already.
 */
import { html } from 'ghtml';
import { POSTURE } from '../../domain/posture.ts';
import type { RuntimeEnvironment } from '../../domain/runtime.ts';
import { type Assets, addressOf } from './asset.ts';
import { breakable } from './code.ts';

/** What all pages are rendered with. */
export type Frame = { readonly runtime: RuntimeEnvironment; readonly assets: Assets };

export type Page = {
  readonly title: string;
  /** The address of the page, which the navigation marks. */
  readonly path: string;
  /** HTML, made by `html`. */
  readonly main: string;
  /** The pages beside this one, as HTML: they stand to the left of the main part, or above it. */
  readonly side?: string;
};

/** `pages`: the addresses of the pages that belong to this part of the site. */
const LINKS = [
  { path: '/docs/quickstart', text: 'Guides', pages: /^\/docs\/(?!reference\/|search)/ },
  { path: '/docs', text: 'Reference', pages: /^\/docs\/reference\// },
  { path: '/status', text: 'Status', pages: /^\/status$/ },
] as const;

export const SERVICE_NAME = 'Settlement service';

/** The document around the main part of a page. */
export const document = (frame: Frame, page: Page): string =>
  html`<!doctype html>
<html lang="en">
<head>
!${head(frame.assets, page.title)}
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
<header>
<p class="name"><a href="/"!${current(page.path === '/')}>${SERVICE_NAME}</a></p>
<nav aria-label="Pages">
<ul>!${LINKS.map((link) => html`<li><a href="${link.path}"!${markOf(link, page)}>${link.text}</a></li>`)}</ul>
</nav>
</header>
<p class="posture" role="note">${POSTURE[frame.runtime]}</p>
!${page.side === undefined ? mainOf(page) : html`<div class="columns">!${page.side}!${mainOf(page)}</div>`}
<footer>
<p>Controlled infrastructure under hardening. No corridor is live. Keep keys on a server: no page asks for one.</p>
</footer>
</body>
</html>
`;

const mainOf = (page: Page): string => html`<main id="main">
!${page.main}
</main>`;

/** Marks the link to the page itself, and that to the part of the site that it belongs to. */
const markOf = ({ path, pages }: (typeof LINKS)[number], page: Page): string =>
  path !== page.path && pages.test(page.path) ? ' aria-current="true"' : current(path === page.path);

/** The attribute that marks a link to the page itself. */
export const current = (isCurrent: boolean): string => (isCurrent ? ' aria-current="page"' : '');

const head = (assets: Assets, title: string): string =>
  html`<meta charset="utf-8">
<title>${title === SERVICE_NAME ? title : `${title} · ${SERVICE_NAME}`}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" type="image/svg+xml" href="${addressOf(assets.icon)}">
<link rel="stylesheet" href="${addressOf(assets.style)}">
<script defer src="${addressOf(assets.copy)}"></script>`;

export type Heading = { readonly id: string; readonly text: string; readonly depth: number };

/** A heading with an address of its own. @param inner HTML */
export function heading({ id, depth }: Omit<Heading, 'text'>, inner: string): string {
  const anchor = `<a class="anchor" href="#${id}" aria-label="Address of this section">#</a>`;
  return `<h${depth} id="${id}">${inner}${depth === 1 ? '' : anchor}</h${depth}>\n`;
}

export type Place = { readonly path: string; readonly title: string };

/** Where one is: all pages of a kind, and the headings of the present one. */
export const sideOf = (
  label: string,
  places: readonly Place[],
  present: { readonly path: string; readonly headings: readonly Heading[] },
): string =>
  html`<nav class="side" aria-label="${label}">
<details><summary>${label}</summary>
<ul>
!${places.map(
    ({ path, title }) =>
      html`<li><a href="${path}"!${current(path === present.path)}>${title}</a>!${
        path === present.path ? contents(present.headings) : ''
      }</li>`,
  )}
</ul></details>
</nav>`;

const contents = (headings: readonly Heading[]): string =>
  headings.length === 0
    ? ''
    : html`<ul>!${headings.map(({ id, text }) => html`<li><a href="#${id}">!${breakable(text)}</a></li>`)}</ul>`;

/** The pages before and after this one. */
export function stepsOf(places: readonly Place[], path: string): string {
  const index = places.findIndex((place) => place.path === path);
  const link = (place: Place | undefined, rel: string, word: string) =>
    place === undefined ? '<span></span>' : html`<a rel="${rel}" href="${place.path}">${word}: ${place.title}</a>`;
  return html`<nav class="steps" aria-label="Previous and next">!${link(places[index - 1], 'prev', 'Previous')}!${link(
    places[index + 1],
    'next',
    'Next',
  )}</nav>`;
}

export const QUERY_LENGTH_MAX = 80;

/** Leads to the search, which needs no script. */
export const searchForm = (query = ''): string =>
  html`<form action="/docs/search" role="search">
<input type="search" name="q" value="${query}" maxlength="${QUERY_LENGTH_MAX}" placeholder="Search"
  aria-label="Search the documentation">
<button>Search</button>
</form>`;
