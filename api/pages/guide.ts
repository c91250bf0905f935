/**
 * The guides for partners: the Markdown of docs/guides, as pages next to the API reference, and as it is. A link to
 * another guide's file leads to its page. The change log is a page among them.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { html } from 'ghtml';
import { repositoryRoot } from '../../process/local/place.ts';
import { document, type Frame, type Place, sideOf, stepsOf } from './layout.ts';
import type { Rendered } from './markdown.ts';
import { settlementPicture } from './settlement-picture.ts';

/** In the order in which they are read. */
export const GUIDES = [
  { name: 'quickstart', title: 'Quickstart' },
  { name: 'settlement', title: "A settlement's life" },
  { name: 'corridors', title: 'Corridors' },
  { name: 'retries', title: 'Safe retries' },
  { name: 'webhooks', title: 'Webhooks' },
  { name: 'reconciliation', title: 'Reconciliation' },
  { name: 'payroll', title: 'A payroll' },
  { name: 'consumers', title: 'Consumers' },
  { name: 'errors', title: 'Errors' },
  { name: 'failures', title: 'Failures' },
] as const;
export type GuideName = (typeof GUIDES)[number]['name'];

const CHANGELOG = { name: 'changelog', title: 'Changelog' } as const;
type DocumentName = GuideName | (typeof CHANGELOG)['name'];

export const GUIDES_DIRECTORY = path.join(repositoryRoot, 'docs', 'guides');
const GUIDE_LINK = /^([a-z-]+)\.md(#.*)?$/;

export const guidePath = (name: DocumentName): string => `/docs/${name}`;

/** The guides and the change log, in the order of `Next`. */
export const GUIDE_PLACES: readonly Place[] = [...GUIDES, CHANGELOG].map(({ name, title }) => ({
  path: guidePath(name),
  title,
}));

/** What the side of a guide leads to. */
const PLACES: readonly Place[] = [...GUIDE_PLACES, { path: '/docs', title: 'API reference' }];

const fileOf = (name: DocumentName): string =>
  name === CHANGELOG.name ? path.join(repositoryRoot, 'CHANGELOG.md') : path.join(GUIDES_DIRECTORY, `${name}.md`);

/** The Markdown of a guide or of the change log; undefined for an unknown name. */
export async function readGuide(name: string): Promise<string | undefined> {
  const found = [...GUIDES, CHANGELOG].find((candidate) => candidate.name === name);
  return found && (await readFile(fileOf(found.name), 'utf8'));
}

/** Renders each guide once, at its first request. Undefined for an unknown guide. */
export function createGuidePages(frame: Frame): (name: string) => Promise<string | undefined> {
  const rendered = new Map<string, Promise<string | undefined>>();
  return async (name) => {
    const page = rendered.get(name) ?? renderGuide(frame, name);
    if ((await page) !== undefined) rendered.set(name, page);
    return await page;
  };
}

async function renderGuide(frame: Frame, name: string): Promise<string | undefined> {
  const markdown = await readGuide(name);
  const place = GUIDE_PLACES.find((candidate) => candidate.path === `/docs/${name}`);
  if (markdown === undefined || place === undefined) return undefined;
  const render = await createRenderer();
  const { html: main, headings } = render(markdown);
  return document(frame, {
    ...place,
    side: sideOf('Guides', PLACES, { path: place.path, headings }),
    main: html`!${main}
<p><a href="${place.path}.md">This page as Markdown</a></p>
!${stepsOf(GUIDE_PLACES, place.path)}`,
  });
}

/** Imported at the first guide, so that a start does not wait for it. */
async function createRenderer(): Promise<(markdown: string) => Rendered> {
  const { createMarkdown } = await import('./markdown.ts');
  return createMarkdown({
    link: (target) => {
      const [, name, section = ''] = GUIDE_LINK.exec(target) ?? [];
      return name === undefined ? target : `/docs/${name}${section}`;
    },
    picture: (file, alt) =>
      file.endsWith('/settlement-way.svg') ? settlementPicture({ label: alt }) : html`<em>${alt}</em>`,
  });
}

/** `/llms.txt`: what there is to read, for programs that read texts (llmstxt.org). */
export const llmsText = (): string => `# Settlement service

> Settlement and payout API for Caribbean corridors. Controlled infrastructure under hardening: value moves only in the local sandbox, as a simulation. No corridor is live.

## Guides

${GUIDE_PLACES.map(({ path: address, title }) => `- [${title}](${address}.md)`).join('\n')}

## Reference

- [OpenAPI 3.1 document](/openapi.json): every operation, error and event
- [Problems](/problems): what each error code means, and what to do next
`;
