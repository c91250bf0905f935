/**
 * What the image carries: everything that its programs import, the authorities of TLS, and neither the embedded stack
 * nor the tests.
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { rootCertificates } from 'node:tls';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { repositoryRoot } from '../../process/local/place.ts';
import { readSource } from '../support/source.ts';
import { words } from '../support/words.ts';

/** What Compose and the image start, and what builds the workflow bundle. */
const ENTRY_POINTS = words('api/main.ts worker/main.ts worker/bundle-main.ts ops/main.ts ops/migrate.ts ops/codec.ts');
const IMPORTED = /(?:^|[^.\w])(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g;
/** Files that the programs read by path: the migrations and their journal, the package's version, the guides. */
const READ_BY_PATH = ['db/migrations/meta/_journal.json', 'package.json', 'docs/guides/quickstart.md', 'CHANGELOG.md'];
/** The bundler starts here, by path. */
const BUNDLED = 'workflows/index.ts';

const DOCKERFILE = readSource('Dockerfile');
const LAST_STAGE = DOCKERFILE.split(/^FROM /m).at(-1) ?? '';
/** What the last stage copies from the repository. */
const COPIES = LAST_STAGE.match(/^COPY (?!--from).+$/gm) ?? [];
const COPIED = COPIES.flatMap((line) =>
  line
    .split(' ')
    .slice(1, -1)
    .filter((word) => !word.startsWith('--')),
);

const isUnder = (file: string, folders: readonly string[]): boolean =>
  folders.some((folder) => file === folder || file.startsWith(`${folder}/`));

/** Every module that these modules import by a relative path, directly or not. */
function listReachable(entries: readonly string[]): string[] {
  const found = new Set(entries);
  for (const file of found) {
    for (const [, imported = ''] of readSource(file).matchAll(IMPORTED))
      found.add(path.posix.join(path.posix.dirname(file), imported));
  }
  return [...found];
}

test('the image copies no scripts and no tests', () => {
  expect(COPIED.length).toBeGreaterThan(5);
  expect(COPIED.every((source) => existsSync(path.join(repositoryRoot, source)))).toBe(true);
  expect(COPIED.filter((source) => source === '.' || isUnder(source, ['scripts', 'test']))).toEqual([]);
});

test('the image copies every module that its programs and workflows import', () => {
  const reachable = listReachable([...ENTRY_POINTS, BUNDLED]);
  expect(reachable.length).toBeGreaterThan(100);
  expect(reachable.filter((file) => !isUnder(file, COPIED))).toEqual([]);
  expect(READ_BY_PATH.filter((file) => !existsSync(path.join(repositoryRoot, file)) || !isUnder(file, COPIED))).toEqual(
    [],
  );
});

test('every program that Compose starts is one of the image', () => {
  const started = [...readSource('docker-compose.yml').matchAll(/\[node, ([^ ,\]]+\.ts)/g)].map(
    ([, file = '']) => file,
  );
  expect(started.length).toBeGreaterThan(3);
  expect(started.filter((file) => !ENTRY_POINTS.includes(file))).toEqual([]);
});

test('the image has the authorities of its Node where the connection of a worker looks for them', async () => {
  const file = '/etc/ssl/certs/ca-certificates.crt';
  expect(LAST_STAGE).toMatch(new RegExp(`^COPY --from=packages ${file} /etc/ssl/certs/$`, 'm'));
  const [, print = ''] = new RegExp(`^RUN mkdir -p /etc/ssl/certs && (node .+) > ${file}$`, 'm').exec(DOCKERFILE) ?? [];
  const { stdout } = await execa('sh', ['-c', print]);
  expect(stdout).toBe(rootCertificates.join('\n'));
});

test('the image has the same modes, whatever umask the repository was checked out with', () => {
  // Octal: the symbolic form depends on the version of the builder.
  expect(COPIES.filter((line) => !line.startsWith('COPY --chmod=755 '))).toEqual([]);
});
