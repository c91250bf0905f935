import { appendFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ERROR_CODES } from '../../domain/error.ts';
import { TRANSITIONS } from '../../domain/settlement.ts';
import { type GeneratedFiles, generatedFiles, staleFiles, writeFiles } from '../../scripts/generate/file.ts';

const NAMES = ['docs/openapi.json', 'docs/errors.md', 'docs/state-machines.md'];

let root: string;
let files: GeneratedFiles;

beforeAll(async () => {
  files = await generatedFiles();
  root = await mkdtemp(path.join(os.tmpdir(), 'generate-'));
  await mkdir(path.join(root, 'docs'));
});

afterAll(() => rm(root, { recursive: true }));

describe('a generated file', () => {
  test('is stale when it is missing, and named', async () => {
    expect(await staleFiles(root, files)).toEqual(NAMES);
  });

  test('is stale when it was changed by hand, it alone', async () => {
    await writeFiles(root, files);
    await appendFile(path.join(root, 'docs/errors.md'), '\n');
    expect(await staleFiles(root, files)).toEqual(['docs/errors.md']);
  });

  test('is not touched when it is what the code says', async () => {
    await writeFiles(root, files);
    expect(await staleFiles(root, files)).toEqual([]);
    expect(await writeFiles(root, files)).toEqual([]);
  });

  test('is the same when it is made again', async () => {
    expect(await generatedFiles()).toEqual(files);
  });
});

describe('the pages', () => {
  test.each(ERROR_CODES)('tell of %s', (code) => {
    expect(files['docs/errors.md']).toContain(`\`${code}\``);
  });

  test('draw every transition of a settlement, in a form that Mermaid reads', () => {
    const [, diagram = ''] = String(files['docs/state-machines.md']).split('```');
    for (const { from, to } of TRANSITIONS) expect(diagram).toContain(`  ${from ?? '[*]'} --> ${to}: `);
    expect(diagram.split('\n').filter((line) => /;|:.*:/.test(line))).toEqual([]);
  });
});
