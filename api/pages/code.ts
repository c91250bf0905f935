/**
 * Examples, as commands to copy or as what they print. A long line continues below, indented: nothing is cut, and no
 * word is broken where a better place exists.
 */
import { html } from 'ghtml';

/** Words up to this length fit the column of a phone. */
const FITTING_LENGTH = 20;
/** A browser ends a line at a hyphen, but a word up to this length stays whole where a line is as long. */
const WHOLE_LENGTH = 30;
/** Continued lines are indented by no more, so that they have room on a phone. */
const LEAD_MAX = 12;
/** After these a line may end. */
const AFTER_MARK = /(?<=\S{4}[/,.:;&?=|(])(?=[^\s/\d])/;

const escaped = (text: string): string => html`${text}`;

/** Text in which a line may also end after a mark inside of a long word, such as an address. */
export const breakable = (text: string): string =>
  text
    .split(/(?<=\s)(?=\S)/)
    .map((word) => {
      const parts = word.trimEnd().length > FITTING_LENGTH ? word.split(AFTER_MARK) : [word];
      return parts.map(withoutBreak).join('<wbr>');
    })
    .join('');

/** Options, header names, times and the like, in which a line could end after a hyphen. */
function withoutBreak(part: string): string {
  const word = part.trimEnd();
  if (!word.includes('-') || word.length > WHOLE_LENGTH) return escaped(part);
  const kind = word.length > FITTING_LENGTH ? 'whole' : 'word';
  return html`<span class="${kind}">${word}</span>${part.slice(word.length)}`;
}

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
<pre><code>!${text
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => `<span class="line${leadOf(line)}">${breakableLine(line)}\n</span>`)}</code></pre></figure>
`;

/** The mark at the end of a command's line stays beside the word before it. */
const CONTINUED = /^(.*\s)(\S{1,28} [\\|])$/;

function breakableLine(line: string): string {
  const [, before, last] = CONTINUED.exec(line) ?? [];
  return before === undefined || last === undefined
    ? breakable(line)
    : html`!${breakable(before)}<span class="whole">${last}</span>`;
}

/** A line continues below its own beginning. */
function leadOf(line: string): string {
  const spaces = Math.min(line.length - line.trimStart().length, LEAD_MAX);
  return spaces < 2 ? '' : ` lead-${spaces - (spaces % 2)}`;
}
