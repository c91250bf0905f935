/**
 * `npm run generate`: writes the pages of `docs/` that are generated from the code. With `--check` it writes nothing,
 * and exits 1 with the name of each stale file.
 */
import path from 'node:path';
import { generatedFiles, staleFiles, writeFiles } from './generate/file.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
const files = await generatedFiles();

if (process.argv.includes('--check')) {
  const stale = await staleFiles(ROOT, files);
  for (const file of stale) console.error(`${file} is stale: run npm run generate`);
  process.exitCode = stale.length === 0 ? 0 : 1;
} else {
  for (const file of await writeFiles(ROOT, files)) console.log(`wrote ${file}`);
}
