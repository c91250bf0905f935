/** The code of the client's README, checked as a partner's project would compile it: next to a copy of the folder. */
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, expectTypeOf, test } from 'vitest';
import {
  type components,
  createClient,
  createConsumerClient,
  isCorridor,
  isCurrency,
  isPaymentMethod,
  isPayoutRail,
} from '../../../clients/typescript/index.ts';
import { localDirectory, repositoryRoot } from '../../../process/local/place.ts';
import { readSource } from '../../support/source.ts';

const CLIENT = 'clients/typescript';

/** Inside the repository, so that the types of Node are found. */
const folder = path.join(localDirectory, `readme-${process.pid}`);

const COMMON = { target: 'es2023', types: ['node'], strict: true };

/** As strict as a project may be, and without what only this repository sets. */
const STRICTEST = {
  ...{ ...COMMON, lib: ['es2023'], module: 'nodenext', skipLibCheck: false, outDir: 'built' },
  ...{ exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, noPropertyAccessFromIndexSignature: true },
  ...{ rewriteRelativeImportExtensions: true, erasableSyntaxOnly: true },
};
const NO_OUTPUT = { allowImportingTsExtensions: true, noEmit: true };
const PLAIN = { ...COMMON, ...NO_OUTPUT, module: 'nodenext' };
const BUNDLED = {
  ...{ ...COMMON, ...NO_OUTPUT, module: 'esnext', moduleResolution: 'bundler' },
  ...{ lib: ['es2023', 'dom', 'dom.iterable'], isolatedModules: true, skipLibCheck: true },
};

beforeAll(async () => {
  const blocks = [...readSource(`${CLIENT}/README.md`).matchAll(/```ts\n(.*?)```/gs)].map(([, code = '']) => code);
  expect(blocks.length).toBeGreaterThan(5);
  await mkdir(folder, { recursive: true });
  await cp(path.join(repositoryRoot, CLIENT), path.join(folder, 'settlement-client'), { recursive: true });
  const program = ['declare function save(text: string): Promise<void>;', ...blocks].join('\n');
  await writeFile(path.join(folder, 'readme.ts'), program);
  await writeFile(path.join(folder, 'package.json'), '{"type":"module"}');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const compile = async (compilerOptions: object) => {
  await writeFile(path.join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['readme.ts'] }));
  const options = { cwd: repositoryRoot, reject: false } as const;
  const { stdout, exitCode } = await execa('npx', ['tsc', '--singleThreaded', '-p', folder], options);
  return { stdout, exitCode };
};

test.for([
  ['`strict` alone', PLAIN],
  ["a bundler's resolution and the types of browsers", BUNDLED],
] as const)('every block of the README compiles next to a copy of the client, with %s', async ([, options]) => {
  expect(await compile(options)).toEqual({ stdout: '', exitCode: 0 });
});

test('every block of the README compiles in the strictest project, and what is compiled runs', async () => {
  expect(await compile(STRICTEST)).toEqual({ stdout: '', exitCode: 0 });
  const script =
    "import('./built/settlement-client/index.js').then(({ createClient }) => console.log(typeof createClient))";
  const ran = await execa(process.execPath, ['-e', script], { cwd: folder });
  expect(ran.stdout).toBe('function');
});

/** `settlements.create` for each function of a client; one that makes an intent, or sends anything, is no method. */
function methodsOf(client: object): Set<string> {
  const functions = Object.entries(client).flatMap(([name, value]) =>
    typeof value === 'function' ? [name] : Object.keys(value).map((method) => `${name}.${method}`),
  );
  return new Set(functions.filter((name) => !/(^|[.])(prepare|request|send)$/.test(name)));
}

test("the README's tables have every method, and no other", () => {
  const tables = readSource(`${CLIENT}/README.md`).split("| a consumer's client");
  const named = tables.map((text) => new Set([...text.matchAll(/^\| `([\w.]+)` \|/gm)].map(([, name]) => name)));
  const baseUrl = 'http://127.0.0.1:1';
  expect(named).toEqual([methodsOf(createClient({ baseUrl })), methodsOf(createConsumerClient({ baseUrl }))]);
});

test('a text is narrowed to what a field takes', () => {
  const row = { corridor: 'US-JM', method: 'card', rail: 'cash_pickup' };
  expect([isCorridor(row.corridor), isPaymentMethod(row.method), isPayoutRail(row.rail)]).toEqual([true, true, true]);
  if (isCorridor(row.corridor)) expectTypeOf(row.corridor).toEqualTypeOf<components['schemas']['CorridorId']>();
  expect([isCorridor('us-jm'), isCurrency('JMD'), isPaymentMethod('internal'), isPayoutRail('')]).toEqual([
    false,
    true,
    false,
    false,
  ]);
});
