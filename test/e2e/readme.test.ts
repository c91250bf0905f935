/** The README promises outputs. Its own lines are run against a stack, and their outputs are compared. */
import { expect, test as plain } from 'vitest';
import { withStack } from '../support/fixture.ts';
import { examplesOf, expectExamples } from '../support/page-example.ts';
import { readSource } from '../support/source.ts';

const README = readSource('README.md');

const test = withStack();

function sectionOf(title: string): string {
  const [, section = ''] = README.split(`\n## ${title}\n`);
  return section.split('\n## ')[0] ?? '';
}

test('every line of the five minutes runs, and prints what the README shows', async ({ stack }) => {
  const examples = examplesOf(sectionOf('Five minutes'));
  expect(examples.length).toBeGreaterThan(1);
  await expectExamples(examples, stack.baseUrl);
});

const pages = ['README.md', 'CONTRIBUTING.md'].map((file) => [file, readSource(file)] as const);

plain.each(pages)('every npm command of %s exists', (_, page) => {
  const { scripts }: { scripts: Record<string, string> } = JSON.parse(readSource('package.json'));
  const named = [...page.matchAll(/npm run (?:--silent )?([\w:-]+)/g)].map(([, name]) => name ?? '');
  expect(named.length).toBeGreaterThan(3);
  expect(named.filter((name) => !(name in scripts))).toEqual([]);
});

plain.each(pages)('every file that %s links to exists', (_, page) => {
  const links = [...page.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map(([, file]) => file ?? '');
  expect(links.length).toBeGreaterThan(3);
  for (const file of links) expect(() => readSource(file), file).not.toThrow();
});

plain('the first screen of the README says how to start and how to test, and which Node is needed', () => {
  const lines = README.split('\n');
  expect(lines.length).toBeLessThanOrEqual(151);
  const screen = lines.slice(0, 24).join('\n');
  expect(screen).toContain('npm ci && npm start');
  expect(screen).toContain('npm ci && npm test');
  const { engines }: { engines: { node: string } } = JSON.parse(readSource('package.json'));
  expect(engines.node).toBe('>=20.19.0');
  expect(screen).toMatch(/Node 24 is recommended\. Node 20\.19 works/);
});
