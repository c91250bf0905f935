/** The repository's own files, for tests that read them. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { repositoryRoot } from '../../process/local/place.ts';

/** Paths from the root of all files with this extension, without packages and hidden folders. */
export function sourceFiles(extension: string): string[] {
  const entries = readdirSync(repositoryRoot, { withFileTypes: true }).filter(
    ({ name }) => !name.startsWith('.') && name !== 'node_modules',
  );
  const files = entries.flatMap((entry) =>
    entry.isDirectory()
      ? readdirSync(path.join(repositoryRoot, entry.name), { recursive: true, encoding: 'utf8' }).map((name) =>
          path.join(entry.name, name),
        )
      : [entry.name],
  );
  return files.filter((file) => file.endsWith(extension) && !file.includes('node_modules')).sort();
}

export const readSource = (file: string): string => readFileSync(path.join(repositoryRoot, file), 'utf8');

/**
 * Whether a test, a table of tests or a group of this name exists.
 *
 * @param named `api/remote > the name`: the file without `test/` and `.test.ts`
 */
export function hasTest(named: string): boolean {
  const at = named.indexOf(' > ');
  const source = `test/${named.slice(0, at)}.test.ts`;
  if (!existsSync(path.join(repositoryRoot, source))) return false;
  const literal = named.slice(at + 3).replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(`(['"\`])${literal}\\1,`).test(readSource(source));
}
