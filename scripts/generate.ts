/**
 * Writes what is generated from the code under `docs/`; with `--check` writes nothing and fails naming each file that
 * is not what the code says.
 */
import path from 'node:path';
import { generatedFiles, staleFiles, writeFiles } from './generate/file.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
const files = await generatedFiles();

if (process.argv.includes('--check')) {
  const stale = await staleFiles(ROOT, files);
  for (const file of stale) console.error(`${file} is not what the code says: run npm run generate`);
  process.exitCode = stale.length === 0 ? 0 : 1;
} else {
  for (const file of await writeFiles(ROOT, files)) console.log(`wrote ${file}`);
}
