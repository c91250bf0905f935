/**
 * Two generators that are not ours make a client of the committed document. Each client can be imported, and none has a
 * type with a number that the document does not have: a generator numbers what it finds no name for. In TypeScript,
 * `npm run check` generates the types of our own client, and compiles it.
 */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { test as base, describe, expect } from 'vitest';
import { repositoryRoot } from '../../process/local/place.ts';
import { acquirePython, type PythonProgram } from '../support/python-program.ts';

const DOCUMENT = path.join(repositoryRoot, 'docs/openapi.json');

const test = base.extend<{ folder: string }>({
  folder: async ({ task: _task }, use) => {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'openapi-client-'));
    await use(folder);
    await rm(folder, { recursive: true });
  },
});

/** Names that end in a number, but for those with a version of the API: `SettleRequestV2`. */
const numbered = (names: readonly string[]): string[] =>
  names.filter((name) => /[0-9]/.test(name.replace(/V2(?=[A-Z]|$)/g, '')));

async function typesIn(folder: string, extension: string, declaration: RegExp): Promise<string[]> {
  const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith(extension));
  const texts = await Promise.all(files.map((file) => readFile(path.join(folder, file), 'utf8')));
  return texts.flatMap((text) => [...text.matchAll(declaration)].map(([, name = '']) => name));
}

/** In words what is missing, if this machine's Python cannot run them. */
async function findGenerators(): Promise<PythonProgram | string> {
  const purpose = 'Generating clients';
  try {
    return await acquirePython(purpose, () => undefined);
  } catch (error) {
    if (error instanceof Error && error.message.startsWith(purpose)) return error.message;
    throw error;
  }
}

describe('a client in Python', () => {
  const run = async ({ command, env }: PythonProgram, args: readonly string[], cwd: string): Promise<void> => {
    await execa(command, args, { cwd, env: { ...env, PYTHONPATH: `${env['PYTHONPATH']}:${cwd}` } });
  };
  const IMPORT_ALL = `import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(getattr(package, '__path__', []), sys.argv[1] + '.'): importlib.import_module(module.name)`;

  const generator = test.extend<{ python: PythonProgram }>({
    python: async ({ skip }, use) => {
      const python = await findGenerators();
      if (typeof python === 'string') return skip(python);
      await use(python);
    },
  });

  generator(
    'of openapi-python-client is made without a warning, imports, and no class is numbered',
    async ({ folder, python }) => {
      const config = path.join(folder, 'config.json');
      await writeFile(config, JSON.stringify({ post_hooks: [] }));
      const args = ['--path', DOCUMENT, '--config', config, '--meta', 'none', '--output-path', 'made'];
      await run(python, ['-m', 'openapi_python_client', 'generate', ...args, '--fail-on-warning'], folder);
      await run(python, ['-c', IMPORT_ALL, 'made'], folder);
      const classes = await typesIn(folder, '.py', /^class ([A-Za-z0-9_]+)/gm);
      expect(classes).toContain('SettlementStatus');
      expect(numbered(classes)).toEqual([]);
    },
  );

  generator('of datamodel-code-generator imports, and no class is numbered', async ({ folder, python }) => {
    const options = ['--input-file-type', 'openapi', '--output-model-type', 'pydantic_v2.BaseModel'];
    const args = ['--input', DOCUMENT, '--output', 'made.py', '--formatters', 'builtin', ...options];
    await run(python, ['-m', 'datamodel_code_generator', ...args], folder);
    await run(python, ['-c', IMPORT_ALL, 'made'], folder);
    const classes = await typesIn(folder, '.py', /^class ([A-Za-z0-9_]+)/gm);
    expect(classes).toContain('SettlementResponse');
    expect(numbered(classes)).toEqual([]);
  });
});
