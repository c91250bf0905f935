/**
 * Examples, as commands to copy or as what they print. A long line continues below, indented: nothing is cut, and no
 * word is broken where a better place exists.
 */
import { html } from 'ghtml';

/** Words up to this length fit the column of a phone. */
const FITTING_LENGTH = 20;
/** After these a line may end. */
const AFTER_MARK = /(?<=\S{4}[/,.:;&?=|(])(?=[^\s/\d])/;

const escaped = (text: string): string => html`${text}`;

/** Text in which a line may also end after a mark inside of a long word, such as an address. */
export const breakable = (text: string): string =>
  text
    .split(/(?<=\s)(?=\S)/)
    .map((word) => {
      if (word.trimEnd().length > FITTING_LENGTH) return word.split(AFTER_MARK).map(escaped).join('<wbr>');
      // Otherwise a line could end after the dashes.
      return word.startsWith('--')
        ? html`<span class="word">${word.trimEnd()}</span>${word.slice(word.trimEnd().length)}`
        : escaped(word);
    })
    .join('');

/** Code in a sentence. A short name with hyphens, such as `US-JM`, stays on one line. */
export const inlineCode = (text: string): string =>
  text.length > FITTING_LENGTH || /\s/.test(text)
    ? `<code>${breakable(text)}</code>`
    : `<code class="word">${escaped(text)}</code>`;

export type Code = {
  readonly text: string;
  /** What it is: `Shell`, `Output`. */
  readonly label: string;
  /** It is printed by the commands above it, and nobody copies it. */
  readonly isOutput?: boolean;
};

export const codeBlock = ({ text, label, isOutput = false }: Code): string =>
  html`<figure class="code!${isOutput ? ' output' : ''}"><figcaption>${label}</figcaption>
<pre tabindex="0" role="region" aria-label="${label}"><code>!${text
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => `<span class="line">${breakable(line)}\n</span>`)}</code></pre></figure>
`;
