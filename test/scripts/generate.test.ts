import { appendFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TRANSITIONS } from '../../domain/settlement/state.ts';
import { charts } from '../../scripts/generate/chart.ts';
import { type GeneratedFiles, generatedFiles, staleFiles, writeFiles } from '../../scripts/generate/file.ts';

let root: string;
let files: GeneratedFiles;

beforeAll(async () => {
  files = await generatedFiles();
  root = await mkdtemp(path.join(os.tmpdir(), 'generate-'));
  for (const name of Object.keys(files)) await mkdir(path.join(root, path.dirname(name)), { recursive: true });
});

afterAll(() => rm(root, { recursive: true }));

describe('a generated file', () => {
  test('is stale when it is missing', async () => {
    expect(await staleFiles(root, files)).toEqual(Object.keys(files));
  });

  test('is stale when somebody has edited it; the others are not', async () => {
    await writeFiles(root, files);
    await appendFile(path.join(root, 'docs/errors.md'), '\n');
    expect(await staleFiles(root, files)).toEqual(['docs/errors.md']);
  });

  test('is not written when it is up to date', async () => {
    await writeFiles(root, files);
    expect(await staleFiles(root, files)).toEqual([]);
    expect(await writeFiles(root, files)).toEqual([]);
  });
});

describe('the generated pages', () => {
  test('show every transition of a settlement, in valid Mermaid', () => {
    const [, diagram = ''] = String(files['docs/state-machines.md']).split('```');
    for (const { from, to } of TRANSITIONS) expect(diagram).toContain(`  ${from ?? '[*]'} --> ${to}: `);
    expect(diagram.split('\n').filter((line) => /;|:.*:/.test(line))).toEqual([]);
  });
});

describe('the charts of the figures', () => {
  const page = (column: string) => `| what | ${column} | other |
|---|---|---|
| settlement | 1361 (1072–1427) | 1 |
| bare route | **10396** | 2 |
| not measured |  | 3 |

![a chart](images/performance-x.svg)
`;

  test('have a bar with its figure for each row of the table above, empty for what is bare', () => {
    const { 'docs/images/performance-x.svg': svg = '' } = charts(page('/s'));
    expect([...svg.matchAll(/>([^<>\n]+)<\/text>/g)].map(([, text]) => text)).toEqual([
      'settlement',
      '1361/s',
      'bare route',
      '10396/s',
    ]);
    expect([...svg.matchAll(/fill="(none|#\w+)" stroke/g)].map(([, fill]) => fill)).toEqual(['#2a8f9a', 'none']);
  });

  test('a table without the column is an error that names the chart', () => {
    expect(() => charts(page('p99'))).toThrow('the table above images/performance-x.svg has no column /s');
  });
});
