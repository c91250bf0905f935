/**
 * Writes what is generated from the code under `docs/`; with `--check` writes nothing and fails naming each file that
 * is not what the code says.
 */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { errorPage } from './generate/error.ts';
import { describeApi } from './generate/openapi.ts';
import { stateMachinePage } from './generate/state-machine.ts';

const ROOT = path.resolve(import.meta.dirname, '..');

const { document } = await describeApi();
const files: Record<string, string> = {
  'docs/openapi.json': `${JSON.stringify(document, null, 2)}\n`,
  'docs/errors.md': errorPage(),
  'docs/state-machines.md': stateMachinePage(),
};

const check = process.argv.includes('--check');
for (const [file, content] of Object.entries(files)) {
  const target = path.join(ROOT, file);
  const current = await readFile(target, 'utf8').catch(() => undefined);
  if (current === content) continue;
  if (check) {
    console.error(`${file} is stale: run npm run generate`);
    process.exitCode = 1;
  } else {
    await writeFile(target, content);
    console.log(`wrote ${file}`);
  }
}
