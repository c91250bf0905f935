import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import * as workflows from '../../workflows/index.ts';
import { testWorkflowBundle } from '../support/temporal.ts';
import { words } from '../support/words.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
/** Of the code alone: the source map contains comments, and the path of the folder. */
const CODE_BYTES_MAX = 950_000;

/** Modules that may run in a workflow: two folders of ours, and the SDK with its dependencies. */
const ALLOWED = [
  /^\.\/workflows\//,
  /^\.\/domain\//,
  /^\.\/node_modules\/@temporalio\/(workflow|common)\//,
  /^\.\/node_modules\/(nexus-rpc|long|ms)\//,
];

const filesIn = (folder: string): string[] =>
  readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => path.join(folder, name))
    .filter((name) => name.endsWith('.ts'));

const modulesOf = (code: string): string[] => [
  ...new Set([...code.matchAll(/"(\.\/[\w@./-]+\.(?:ts|js|mjs|cjs))"/g)].map(([, name = '']) => name)),
];

test('the bundle has only workflows, domain and the SDK, within its size budget', async () => {
  const { codePath } = await testWorkflowBundle();
  const [code = ''] = readFileSync(codePath, 'utf8').split('//# sourceMappingURL=');
  const modules = modulesOf(code).filter((name) => existsSync(path.join(ROOT, name)));
  expect(modules.length).toBeGreaterThan(50);
  expect(modules.filter((name) => !ALLOWED.some((allowed) => allowed.test(name)))).toEqual([]);
  expect(code.length).toBeLessThan(CODE_BYTES_MAX);
});

test('one file alone proxies activities, and it waits until a canceled activity has ended', () => {
  const proxying = filesIn('workflows').filter((file) =>
    /proxy(Local)?Activities/.test(readFileSync(path.join(ROOT, file), 'utf8')),
  );
  expect(proxying).toEqual(['workflows/activities.ts']);
  const source = readFileSync(path.join(ROOT, 'workflows/activities.ts'), 'utf8');
  expect(source.match(/proxy(Local)?Activities<Activities>\(\{ \.\.\.options, \.\.\.WAIT \}\)/g)).toHaveLength(2);
  expect(source).toContain("const WAIT = { cancellationType: 'WAIT_CANCELLATION_COMPLETED' } as const");
});

test('workflow types keep their names, which running executions refer to', () => {
  expect(new Set(Object.keys(workflows))).toEqual(
    new Set(
      words(`
      otp sandboxCollection sandboxEvent sandboxVerification settlement sweep verification webhookLane
      webhookSubscription
    `),
    ),
  );
});

const versionOf = (folder: string): string =>
  JSON.parse(readFileSync(path.join(ROOT, folder, 'package.json'), 'utf8')).version;

test('all Temporal packages have one version, and there is one protobufjs', () => {
  const packages = readdirSync(path.join(ROOT, 'node_modules/@temporalio'));
  const versions = packages.map((name) => versionOf(`node_modules/@temporalio/${name}`));
  expect(new Set(versions)).toEqual(new Set(['1.24.0']));
  expect(versionOf('node_modules/protobufjs')).toMatch(/^8\./);
  expect(
    packages.filter((name) => existsSync(path.join(ROOT, 'node_modules/@temporalio', name, 'node_modules/protobufjs'))),
  ).toEqual([]);
});
