/**
 * The guides and the README promise outputs. Their own lines are run against a stack, those of the guides in one shell,
 * in the order of the guides.
 */
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, test as plain } from 'vitest';
import { GUIDES, GUIDES_DIRECTORY } from '../../api/pages/guide.ts';
import { ERROR_CODES } from '../../domain/error.ts';
import { SETTLEMENT_STATUSES } from '../../domain/settlement/state.ts';
import { GENERATED } from '../../scripts/generate/document.ts';
import { withStack } from '../support/fixture.ts';
import { examplesOf, expectExamples } from '../support/page-example.ts';
import { readSource } from '../support/source.ts';

const test = withStack();

const guide = (name: string): string => readSource(`docs/guides/${name}.md`);
const codes = (text: string): Set<string> => new Set([...text.matchAll(/`([a-z_]+)`/g)].map(([, code = '']) => code));

test('every example of the guides runs, and prints what the guide shows', async ({ stack }) => {
  const examples = GUIDES.flatMap(({ name }) => examplesOf(guide(name)));
  expect(examples.length).toBeGreaterThan(12);
  await expectExamples(examples, stack.baseUrl);
});

plain('every guide is listed, and begins with its title', () => {
  expect(new Set(readdirSync(GUIDES_DIRECTORY))).toEqual(new Set(GUIDES.map(({ name }) => `${name}.md`)));
  for (const { name, title } of GUIDES)
    expect(guide(name).replace(`${GENERATED}\n\n`, '').split('\n')[0]).toBe(`# ${title}`);
});

plain('every link of a guide leads to another guide', () => {
  for (const { name } of GUIDES) {
    const links = [...guide(name).matchAll(/(?<!!\[[^\]]*)\]\(([^)]+)\)/g)].map(
      ([, target]) => path.parse(target ?? '').name,
    );
    expect(links.filter((link) => !GUIDES.some((other) => other.name === link))).toEqual([]);
  }
});

plain('the guides name every status of a settlement and every code of a refusal', () => {
  const [, table = ''] = guide('settlement').split('| status |');
  expect(SETTLEMENT_STATUSES.filter((status) => !codes(table).has(status))).toEqual([]);
  const picture = readSource('docs/images/settlement-way.svg');
  expect(guide('settlement')).toContain('](../images/settlement-way.svg)');
  expect(SETTLEMENT_STATUSES.filter((status) => !picture.includes(`>${status}<`))).toEqual([]);
  expect(ERROR_CODES.filter((code) => !codes(guide('errors')).has(code))).toEqual([]);
});

const README = readSource('README.md');

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
