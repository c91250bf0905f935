/**
 * docs/operations.md as an operator uses it: the line of an alert, a section, the line of what somebody says, and the
 * commands in them. A drill types only what the page has.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { repositoryRoot } from '../../process/local/place.ts';

/** What somebody says, and the first command, as the page has it: `show <settlement id>`. */
export type FirstLook = { readonly symptom: string; readonly command: string };

/** What is wrong, and the commands in each cell; a cell without one says in words what to do. */
export type Remedy = {
  readonly wrong: string;
  readonly cause: Cell;
  readonly remedy: Cell;
};
export type Cell = { readonly words: string; readonly commands: readonly string[] };

const cellOf = (words: string): Cell => ({
  words,
  commands: [...words.matchAll(/`ops ([^`]+)`/g)].map(([, command = '']) => command),
});

export type Runbook = {
  /** The cells of an alert's line. @throws Error when there is none */
  alert(name: string): string;
  /** From a heading to the next one. @throws Error when there is none */
  section(heading: string): string;
  /** The table "Causes and remedies". */
  readonly remedies: readonly Remedy[];
  /** The table "What to look at first". */
  readonly firstLooks: readonly FirstLook[];
};

export function readRunbook(page = readFileSync(path.join(repositoryRoot, 'docs/operations.md'), 'utf8')): Runbook {
  const lines = page.split('\n');
  const section = (heading: string): string => {
    const start = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, '') === heading);
    if (start === -1) throw new Error(`docs/operations.md has no heading "${heading}".`);
    const length = lines.slice(start + 1).findIndex((line) => /^#+ /.test(line));
    return lines.slice(start + 1, length === -1 ? undefined : start + 1 + length).join('\n');
  };
  return {
    section,
    alert: (name) => {
      const found = lines.find((line) => line.startsWith(`| \`${name}\` |`));
      if (found === undefined) throw new Error(`docs/operations.md has no line for the alert ${name}.`);
      return found;
    },
    remedies: section('Causes and remedies')
      .split('\n')
      .filter((line) => line.startsWith('| '))
      .slice(1)
      .map((line) => line.split('|'))
      .map(([, wrong = '', cause = '', remedy = '']) => ({
        wrong: wrong.trim(),
        cause: cellOf(cause.trim()),
        remedy: cellOf(remedy.trim()),
      })),
    firstLooks: [...section('What to look at first').matchAll(/^\| ([^|`]+) \| `ops ([^`]+)` \|/gm)].map(
      ([, symptom = '', command = '']) => ({ symptom, command }),
    ),
  };
}

/** Whether a text of the page has the command, with or without `npm run`. */
export const hasCommand = (text: string, command: string): boolean =>
  [`\`ops ${command}`, `npm run ops -- ${command}`].some((typed) => text.includes(typed));

/**
 * What is typed for a command of the page: each placeholder, and each choice as in `paid|refused`, has its value.
 *
 * @throws Error for a placeholder without a value
 */
export function typed(command: string, values: Readonly<Record<string, string>>): string[] {
  const words = command.match(/(?:<[^>]+>|[^\s<])+/g) ?? [];
  return words.map((word) => {
    if (!/[<|]/.test(word)) return word;
    const value = values[word.replaceAll(/[<>]/g, '')];
    if (value === undefined) throw new Error(`The command "${command}" needs a value for ${word}.`);
    return value;
  });
}
