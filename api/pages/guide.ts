/**
 * The guides for partners: the Markdown of docs/guides, as pages next to the API reference. HTML in Markdown is shown
 * as text. A link to another guide's file leads to its page. A heading has an id, to which links lead.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { html } from 'ghtml';
import { sectionId } from '../../domain/failure-help.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { current, document, type Frame } from './layout.ts';

/** In the order in which they are read. */
export const GUIDES = [
  { name: 'quickstart', title: 'Quickstart' },
  { name: 'settlement', title: "A settlement's life" },
  { name: 'corridors', title: 'Corridors' },
  { name: 'retries', title: 'Safe retries' },
  { name: 'webhooks', title: 'Webhooks' },
  { name: 'reconciliation', title: 'Reconciliation' },
  { name: 'consumers', title: 'Consumers' },
  { name: 'errors', title: 'Errors' },
  { name: 'failures', title: 'Failures' },
] as const;
export type GuideName = (typeof GUIDES)[number]['name'];

export const GUIDES_DIRECTORY = path.join(repositoryRoot, 'docs', 'guides');
const GUIDE_LINK = /^([a-z-]+)\.md(#.*)?$/;

export const guidePath = (name: GuideName): string => `/docs/${name}`;

/** Renders each guide once, at its first request. Undefined for an unknown guide. */
export function createGuidePages(frame: Frame): (name: string) => Promise<string | undefined> {
  const rendered = new Map<GuideName, Promise<string>>();
  return async (name) => {
    const guide = GUIDES.find((candidate) => candidate.name === name);
    if (guide === undefined) return undefined;
    const page = rendered.get(guide.name) ?? renderGuide(frame, guide);
    rendered.set(guide.name, page);
    return await page;
  };
}

async function renderGuide(frame: Frame, { name, title }: (typeof GUIDES)[number]): Promise<string> {
  const markdown = await readFile(path.join(GUIDES_DIRECTORY, `${name}.md`), 'utf8');
  const renderer = await createRenderer();
  return document(frame, {
    title,
    path: guidePath(name),
    main: html`<nav aria-label="Guides">
<ul class="guides">
!${GUIDES.map(
      (guide) => html`<li><a href="${guidePath(guide.name)}"!${current(guide.name === name)}>${guide.title}</a></li>`,
    )}
</ul>
</nav>
<div class="guide">
!${renderer.render(markdown)}
</div>`,
  });
}

/** Imported at the first guide, so that a start does not wait for it. */
async function createRenderer(): Promise<{ render(markdown: string): string }> {
  const { Marked } = await import('marked');
  const renderer = new Marked({
    renderer: {
      html: ({ text }) => html`${text}`,
      heading({ tokens, depth, text }) {
        return `<h${depth} id="${sectionId(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
    },
    walkTokens: (token) => {
      if (token.type !== 'link') return;
      const [, name, section = ''] = GUIDE_LINK.exec(token['href']) ?? [];
      if (name !== undefined) token['href'] = `/docs/${name}${section}`;
    },
  });
  return { render: (markdown) => renderer.parse(markdown, { async: false }) };
}
