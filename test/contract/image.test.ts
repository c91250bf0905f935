/** What the image carries: everything that its programs import, and neither the embedded stack nor the tests. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { repositoryRoot } from '../../process/local/place.ts';
import { words } from '../support/words.ts';

/** What Compose and the image start, and what builds the workflow bundle. */
const ENTRY_POINTS = words('api/main.ts worker/main.ts worker/bundle-main.ts ops/main.ts ops/migrate.ts ops/codec.ts');
const IMPORTED = /(?:^|[^.\w])(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g;
/** Files that the programs read by path: the migrations and their journal, the package's version, the guides. */
const READ_BY_PATH = ['db/migrations/meta/_journal.json', 'package.json', 'docs/guides/quickstart.md', 'CHANGELOG.md'];
/** The bundler starts here, by path. */
const BUNDLED = 'workflows/index.ts';

const readText = (file: string): string => readFileSync(path.join(repositoryRoot, file), 'utf8');

/** The sources that the last stage of the Dockerfile copies from the repository. */
function listCopied(): string[] {
  const stages = readText('Dockerfile').split(/^FROM /m);
  const copies = (stages.at(-1) ?? '').split('\n').filter((line) => /^COPY (?!--from)/.test(line));
  return copies.flatMap((line) => line.trim().split(/\s+/).slice(1, -1));
}

const isUnder = (file: string, folders: readonly string[]): boolean =>
  folders.some((folder) => file === folder || file.startsWith(`${folder}/`));

/** Every module that these modules import by a relative path, directly or not. */
function listReachable(entries: readonly string[]): string[] {
  const found = new Set(entries);
  for (const file of found) {
    for (const [, imported = ''] of readText(file).matchAll(IMPORTED))
      found.add(path.posix.join(path.posix.dirname(file), imported));
  }
  return [...found];
}

test('the image copies no scripts and no tests', () => {
  const copied = listCopied();
  expect(copied.length).toBeGreaterThan(5);
  expect(copied.every((source) => existsSync(path.join(repositoryRoot, source)))).toBe(true);
  expect(copied.filter((source) => source === '.' || isUnder(source, ['scripts', 'test']))).toEqual([]);
});

test('the image copies every module that its programs and workflows import', () => {
  const copied = listCopied();
  const reachable = listReachable([...ENTRY_POINTS, BUNDLED]);
  expect(reachable.length).toBeGreaterThan(100);
  expect(reachable.filter((file) => !isUnder(file, copied))).toEqual([]);
  expect(READ_BY_PATH.filter((file) => !existsSync(path.join(repositoryRoot, file)) || !isUnder(file, copied))).toEqual(
    [],
  );
});
