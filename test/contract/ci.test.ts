/** What users of a forge and of dev containers get: it is valid, and does what `.ci/run` and the README do. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { repositoryRoot } from '../../process/local/place.ts';
import { readSource } from '../support/source.ts';
import { words } from '../support/words.ts';

const WORKFLOW = '.github/workflows/ci.yml';

const Steps = z.array(
  z.object({
    uses: z.string().optional(),
    run: z.string().optional(),
    with: z.record(z.string(), z.unknown()).optional(),
  }),
);

const Workflow = z.object({
  permissions: z.unknown(),
  jobs: z.strictObject({
    test: z.object({ strategy: z.object({ matrix: z.object({ node: z.array(z.string()) }) }), steps: Steps }),
    secrets: z.object({ steps: Steps }),
  }),
});

const Dependabot = z.strictObject({
  version: z.literal(2),
  updates: z.array(
    z.strictObject({
      'package-ecosystem': z.string(),
      directory: z.string().optional(),
      directories: z.array(z.string()).optional(),
      schedule: z.strictObject({ interval: z.literal('weekly') }),
      groups: z.record(z.string(), z.strictObject({ patterns: z.array(z.string()) })),
    }),
  ),
});

/** The properties that we use, as the specification of dev containers describes them; a misspelt one is a fault. */
const DevContainer = z.strictObject({
  name: z.string(),
  image: z.string(),
  remoteUser: z.string(),
  postCreateCommand: z.string(),
  forwardPorts: z.array(z.number().int()),
  portsAttributes: z.record(z.string().regex(/^\d+$/), z.strictObject({ label: z.string() })),
});

const workflow = () => Workflow.parse(parse(readSource(WORKFLOW)));
/** The version of Node that the image has. */
const imageNode = (): string => /NODE_IMAGE=node:([\d.]+)/.exec(readSource('Dockerfile'))?.[1] ?? 'none';

test('the workflow runs .ci/run, may only read, and names each action by its commit', () => {
  const { permissions, jobs } = workflow();
  expect(permissions).toEqual({ contents: 'read' });
  expect(jobs.test.steps.flatMap(({ run }) => run ?? [])).toEqual(['.ci/run']);
  const actions = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ uses }) => uses ?? []));
  expect(actions.length).toBeGreaterThan(0);
  expect(actions.filter((action) => !/@[0-9a-f]{40}$/.test(action))).toEqual([]);
});

test('the tests have the whole history, in which the released commit is', () => {
  const [checkout] = workflow().jobs.test.steps;
  expect(checkout?.with).toMatchObject({ 'fetch-depth': 0 });
});

test('the workflow searches every commit for secrets, by one version of one program', () => {
  const { steps } = workflow().jobs.secrets;
  expect(steps.flatMap(({ uses, with: given }) => (uses?.startsWith('actions/checkout@') ? given : []))).toEqual([
    expect.objectContaining({ 'fetch-depth': 0 }),
  ]);
  expect(steps.flatMap(({ run }) => run ?? [])).toEqual([
    expect.stringMatching(/gitleaks\/v8@v\d+\.\d+\.\d+ git .*--redact/),
  ]);
});

test('every file that names versions is kept up to date', () => {
  const { updates } = Dependabot.parse(parse(readSource('.github/dependabot.yml')));
  const watched = updates.flatMap(({ directory, directories = [] }) => [
    ...(directory ? [directory] : []),
    ...directories,
  ]);
  for (const folder of watched) expect(existsSync(path.join(repositoryRoot, folder)), folder).toBe(true);
  expect(updates.map((update) => update['package-ecosystem'])).toEqual(
    words('npm pip docker docker-compose github-actions'),
  );
});

test('the workflow tests with the oldest supported Node and with that of the image', () => {
  const { engines }: { engines: { node: string } } = JSON.parse(readSource('package.json'));
  const minor = (version: string): string => version.split('.').slice(0, 2).join('.');
  const oldest = minor(engines.node.replace('>=', ''));
  expect(workflow().jobs.test.strategy.matrix.node).toEqual([oldest, minor(imageNode())]);
});

test('the dev container has the Node of the image, installs what npm start needs, and forwards its ports', () => {
  const container = DevContainer.parse(JSON.parse(readSource('.devcontainer/devcontainer.json')));
  expect(container.image).toMatch(new RegExp(`^node:${imageNode()}-`));
  expect(container.postCreateCommand).toBe('npm ci');
  expect(container.forwardPorts.map(String)).toEqual(Object.keys(container.portsAttributes));
});
