/**
 * Markdown of this repository as HTML. HTML in Markdown is shown as text. A heading has an id, to which links lead.
 * Outputs are told from commands: a block `text` is what the commands above it print.
 */
import { html } from 'ghtml';
import { Marked, type MarkedExtension, type Token, type Tokens } from 'marked';
import { sectionId } from '../../domain/failure-help.ts';
import { codeBlock, inlineCode } from './code.ts';
import { type Heading, heading } from './layout.ts';

const LABELS: Readonly<Record<string, string>> = {
  sh: 'Shell',
  text: 'Output',
  js: 'JavaScript',
  python: 'Python',
  http: 'HTTP request',
};

export type Rendered = { readonly html: string; readonly headings: readonly Heading[] };

export type Links = {
  /** The address of a link's target on this server. */
  readonly link: (target: string) => string;
  /** The picture of a file, as HTML. */
  readonly picture: (file: string, alt: string) => string;
};

export function createMarkdown(links: Links): (markdown: string) => Rendered {
  const marked = new Marked(extension(links));
  return (markdown) => ({
    html: marked.parse(markdown, { async: false }),
    headings: marked.lexer(markdown).flatMap(headingOf),
  });
}

function headingOf(token: Token): Heading[] {
  if (token.type !== 'heading' || token['depth'] === 1) return [];
  const { text, depth } = token as Tokens.Heading;
  return [{ id: sectionId(text), text: text.replaceAll('`', ''), depth }];
}

const extension = ({ link, picture }: Links): MarkedExtension => ({
  walkTokens: (token) => {
    if (token.type === 'link') token['href'] = link(token['href']);
  },
  renderer: {
    html: ({ text }) => (text.startsWith('<!--') ? '' : html`${text}`),
    heading({ tokens, depth, text }) {
      return heading({ id: sectionId(text), depth }, this.parser.parseInline(tokens));
    },
    code: ({ text, lang = '' }) => codeBlock({ text, label: LABELS[lang] ?? 'Text', isOutput: lang === 'text' }),
    codespan: ({ text }) => inlineCode(text),
    image: ({ href, text }) => picture(href, text),
    /** A picture is a block of its own. */
    paragraph({ tokens }) {
      const inner = this.parser.parseInline(tokens);
      return inner.startsWith('<figure') ? inner : `<p>${inner}</p>\n`;
    },
    table({ header, rows }) {
      const columns = header.map(({ tokens }) => this.parser.parseInline(tokens));
      const cells = (row: Tokens.TableCell[]) =>
        row.map(({ tokens }, index) => {
          const inner = this.parser.parseInline(tokens);
          return index === 0
            ? `<th scope="row">${inner}</th>`
            : html`<td data-column="${header[index]?.text ?? ''}">!${inner}</td>`;
        });
      return `<table>
<thead><tr>${columns.map((column) => `<th scope="col">${column}</th>`).join('')}</tr></thead>
<tbody>
${rows.map((row) => `<tr>${cells(row).join('')}</tr>\n`).join('')}</tbody>
</table>
`;
    },
  },
});
