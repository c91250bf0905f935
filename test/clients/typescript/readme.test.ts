/** The code of the client's README, checked as a partner's project would compile it: next to a copy of the folder. */
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { localDirectory, repositoryRoot } from '../../../process/local/place.ts';
import { readSource } from '../../support/source.ts';

const CLIENT = 'clients/typescript';

/** Inside the repository, so that the types of Node are found. */
const folder = path.join(localDirectory, `readme-${process.pid}`);

/** As strict as a project may be, and without what only this repository sets. */
const TSCONFIG = {
  compilerOptions: {
    ...{ target: 'es2023', lib: ['es2023'], module: 'nodenext', types: ['node'], strict: true, skipLibCheck: false },
    ...{ exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, noPropertyAccessFromIndexSignature: true },
    ...{ rewriteRelativeImportExtensions: true, erasableSyntaxOnly: true, outDir: 'built' },
  },
  include: ['readme.ts'],
};

test('every block of the README compiles next to a copy of the client, and what is compiled runs', async ({
  onTestFinished,
}) => {
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const blocks = [...readSource(`${CLIENT}/README.md`).matchAll(/```ts\n(.*?)```/gs)].map(([, code = '']) => code);
  expect(blocks.length).toBeGreaterThan(5);
  await mkdir(folder, { recursive: true });
  await cp(path.join(repositoryRoot, CLIENT), path.join(folder, 'settlement-client'), { recursive: true });
  const program = ['declare function save(text: string): Promise<void>;', ...blocks].join('\n');
  await writeFile(path.join(folder, 'readme.ts'), program);
  await writeFile(path.join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
  await writeFile(path.join(folder, 'package.json'), '{"type":"module"}');
  const compiled = await execa('npx', ['tsc', '-p', folder], { cwd: repositoryRoot, reject: false });
  expect(compiled.stdout).toBe('');
  const script =
    "import('./built/settlement-client/index.js').then(({ createClient }) => console.log(typeof createClient))";
  const ran = await execa(process.execPath, ['-e', script], { cwd: folder });
  expect(ran.stdout).toBe('function');
});
