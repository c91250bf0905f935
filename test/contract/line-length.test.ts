/**
 * No line of code or comment is longer than 120 characters, and no line of a hand-written page is longer than 160. A
 * text, a statement or a pattern that is one literal may be longer: splitting it would hide what it says.
 */
import { expect, test } from 'vitest';
import { readSource, sourceFiles } from '../support/source.ts';

/** Written by a generator, or by `npm run drill`, which quotes whole lines. */
const GENERATED = [
  'docs/errors.md',
  'docs/state-machines.md',
  'docs/drills.md',
  'clients/typescript/generated/openapi.ts',
];

/** A line that holds a literal, or lies inside of one of several lines. */
const LITERAL = /['"`/]|SELECT|WHERE|JOIN|CASE|<\w+>/;
const COMMENT = /^\s*(\*|\/\/|\/\*)/;
/** A table's row cannot be wrapped. */
const TABLE_ROW = /^\|/;

const isTooLong = (extension: string, line: string): boolean =>
  extension === '.ts'
    ? line.length > 120 && (COMMENT.test(line) || !LITERAL.test(line))
    : line.length > 160 && !TABLE_ROW.test(line);

test.each(['.ts', '.md'])('no line of a %s file is too long', (extension) => {
  const files = sourceFiles(extension).filter((file) => !GENERATED.includes(file));
  expect(files).not.toEqual([]);
  const long = files.flatMap((file) =>
    readSource(file)
      .split('\n')
      .flatMap((line, index) => (isTooLong(extension, line) ? [`${file}:${index + 1}`] : [])),
  );
  expect(long).toEqual([]);
});
