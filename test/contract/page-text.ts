/** Reading a page of docs/ in a test. */

/** What is written as code. */
export const codes = (text: string): string[] => [...text.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);

/** The cells of each row of the tables, headings included. */
export const rowsOf = (text: string): string[][] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| ---'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );

/** Each item of the lists on one line. */
export const itemsOf = (text: string): string[] =>
  [...text.matchAll(/^- ((?:.+\n?)(?: {2}.+\n?)*)/gm)].map(([, item = '']) => item.trim().replaceAll(/\s*\n\s*/g, ' '));

/** A full stop ends a sentence, but that of a bold head. */
export const sentencesOf = (text: string): string[] => text.split(/(?<=\.) (?=[A-Z`])/);
