/**
 * What every page has: one heading, landmarks, the posture in words at the top, and no inline style or script. `html`
 * escapes every value without a `!` before it. A value with `!` is HTML already.
 */
import { html } from 'ghtml';
import { POSTURE } from '../../domain/posture.ts';
import type { RuntimeEnvironment } from '../../domain/runtime.ts';
import { type Assets, addressOf } from './asset.ts';

/** What all pages are rendered with. */
export type Frame = { readonly runtime: RuntimeEnvironment; readonly assets: Assets };

export type Page = {
  readonly title: string;
  /** The address of the page, which the navigation marks. */
  readonly path: string;
  /** HTML, made by `html`. */
  readonly main: string;
};

const LINKS = [
  { path: '/', text: 'Overview' },
  { path: '/docs/quickstart', text: 'Guides' },
  { path: '/docs', text: 'API reference' },
  { path: '/status', text: 'Status' },
] as const;

export const SERVICE_NAME = 'Settlement service';

/** The document around the main part of a page. */
export const document = (frame: Frame, page: Page): string =>
  html`<!doctype html>
<html lang="en">
<head>
!${head(frame.assets, page.title)}
!${stylesheet(frame.assets)}
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
<header>
<p class="name"><a href="/">${SERVICE_NAME}</a></p>
<nav aria-label="Pages">
<ul>!${LINKS.map(({ path, text }) => html`<li><a href="${path}"!${current(path === page.path)}>${text}</a></li>`)}</ul>
</nav>
</header>
<p class="posture" role="note">${POSTURE[frame.runtime]}</p>
<main id="main">
!${page.main}
</main>
<footer>
<p>Controlled infrastructure under hardening. No corridor is live. Keep keys on a server: no page asks for one.</p>
</footer>
</body>
</html>
`;

/** The attribute that marks a link to the page itself. */
export const current = (isCurrent: boolean): string => (isCurrent ? ' aria-current="page"' : '');

/** The `head` of a page without its styles. */
export const head = (assets: Assets, title: string): string =>
  html`<meta charset="utf-8">
<title>${title === SERVICE_NAME ? title : `${title} · ${SERVICE_NAME}`}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" type="image/svg+xml" href="${addressOf(assets.icon)}">`;

export const stylesheet = (assets: Assets): string => html`<link rel="stylesheet" href="${addressOf(assets.style)}">`;
