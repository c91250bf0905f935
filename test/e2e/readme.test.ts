/** The README promises outputs. Its own lines are run against a stack, and their outputs are compared. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test as plain } from 'vitest';
import { SETTLEMENT_STATUSES } from '../../domain/settlement.ts';
import { repositoryRoot } from '../../process/place.ts';
import { withStack } from '../support/fixture.ts';
import { examplesOf, expectExamples } from '../support/page-example.ts';

const README = readFileSync(path.join(repositoryRoot, 'README.md'), 'utf8');

const test = withStack();

function sectionOf(title: string): string {
  const [, section = ''] = README.split(`\n## ${title}\n`);
  return section.split('\n## ')[0] ?? '';
}

test('every line of the five minutes runs, and prints what the README shows', async ({ stack }) => {
  const examples = examplesOf(sectionOf('Five minutes'));
  expect(examples.length).toBeGreaterThan(3);
  await expectExamples(examples, stack.baseUrl);
}, 120_000);

plain('the picture of a settlement shows every state, and none that does not exist', () => {
  const words = new Set(sectionOf('The way of a settlement').match(/\b[a-z_]+\b/g));
  expect(SETTLEMENT_STATUSES.filter((status) => !words.has(status))).toEqual([]);
  const drawn = [...sectionOf('The way of a settlement').matchAll(/(?:^|-->)\s+([a-z_]+)(?=\s|$)/gm)].map(
    ([, state]) => state,
  );
  const known: readonly string[] = [...SETTLEMENT_STATUSES, 'request', 'certificate', 'flowchart'];
  expect(drawn.filter((state) => !known.includes(state ?? ''))).toEqual([]);
});

plain('every npm command of the README exists', () => {
  const { scripts }: { scripts: Record<string, string> } = JSON.parse(
    readFileSync(path.join(repositoryRoot, 'package.json'), 'utf8'),
  );
  const named = [...README.matchAll(/npm run (?:--silent )?([\w:-]+)/g)].map(([, name]) => name ?? '');
  expect(named.filter((name) => !(name in scripts))).toEqual([]);
});

plain('every file that the README links to exists', () => {
  const links = [...README.matchAll(/\]\(([^)#]+)\)/g)].map(([, file]) => file ?? '');
  for (const file of links) expect(() => readFileSync(path.join(repositoryRoot, file)), file).not.toThrow();
});
