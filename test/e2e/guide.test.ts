/** The guides promise outputs. Their own lines are run against a stack, in one shell, in the order of the guides. */
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
