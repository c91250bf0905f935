/** The README promises outputs. Its own lines are run against a stack, and their outputs are compared. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { execa } from 'execa';
import { expect, test as plain } from 'vitest';
import { SETTLEMENT_STATUSES } from '../../domain/settlement.ts';
import { repositoryRoot } from '../../process/place.ts';
import { withStack } from '../support/fixture.ts';

const README = readFileSync(path.join(repositoryRoot, 'README.md'), 'utf8');
/** Between the outputs of two blocks. */
const MARK = '---- next block ----';

const test = withStack();

function sectionOf(title: string): string {
  const [, section = ''] = README.split(`\n## ${title}\n`);
  return section.split('\n## ')[0] ?? '';
}

/** The commands of each block, and the output that the README shows below it. */
const blocks = [...sectionOf('Five minutes').matchAll(/```sh\n(.*?)```\n\n```text\n(.*?)```/gs)].map(
  ([, commands = '', output = '']) => ({ commands, output }),
);

/** Times, ids and digests differ in each run. */
const general = (output: string): string =>
  output
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replaceAll(/CERT-[0-9A-F]{32}/g, '<certificate>')
    .trim();

test('every line of the five minutes runs, and prints what the README shows', async ({ stack }) => {
  expect(blocks.length).toBeGreaterThan(3);
  const script = blocks.map(({ commands }) => `${commands}echo '${MARK}'`).join('\n');
  const { stdout, stderr, exitCode } = await execa(
    'bash',
    ['-eu', '-o', 'pipefail', '-c', script.replaceAll('http://127.0.0.1:3000', stack.baseUrl)],
    {
      cwd: repositoryRoot,
      reject: false,
    },
  );
  expect(exitCode, stderr).toBe(0);
  const outputs = stdout.split(MARK).slice(0, -1).map(general);
  expect(outputs).toEqual(blocks.map(({ output }) => general(output)));
}, 90_000);

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
