/** The examples of partners, run against the service: each prints what examples/expected says, in every language. */
import { readdirSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { expect, test as plain } from 'vitest';
import { createClient } from '../../clients/typescript/index.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { FILE, withStack } from '../support/fixture.ts';

const EXAMPLES = path.join(repositoryRoot, 'examples');

/** These have no story of their own: what the others share, and a receiver that runs until it is stopped. */
const OTHERS = ['connection', 'common', 'receiver'];

const storiesOf = (folder: string): string[] =>
  readdirSync(path.join(EXAMPLES, folder))
    .map((file) => path.parse(file).name)
    .filter((name) => !OTHERS.includes(name))
    .sort();

const LANGUAGES = [
  { name: 'typescript', stories: storiesOf('typescript'), command: 'node --import tsx', extension: 'ts' },
  { name: 'curl', stories: storiesOf('curl'), command: 'bash', extension: 'sh' },
] as const;

const test = withStack({ deliveries: true })
  .extend('apiKey', FILE, async ({ stack }) => {
    const signUp = { name: 'Acme', country: 'JM', contact_email: 'dev@acme.example' };
    return (await createClient({ baseUrl: stack.baseUrl }).organizations.create(signUp)).api_key;
  })
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  .extend('folder', FILE, async ({}, { onCleanup }) => {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'examples-'));
    onCleanup(() => rm(folder, { recursive: true }));
    return folder;
  });

const all = LANGUAGES.flatMap((language) => language.stories.map((story) => ({ ...language, story })));

test.concurrent.for(all)('$name/$story prints what is expected', async (example, { stack, apiKey, folder, expect }) => {
  const { name, story, command, extension } = example;
  const [program = '', ...options] = command.split(' ');
  const env = { API: stack.baseUrl, API_KEY: apiKey, PORT: '0', INTENT_FILE: path.join(folder, 'intent.json') };
  const { stdout, stderr, exitCode } = await execa(program, [...options, `examples/${name}/${story}.${extension}`], {
    cwd: repositoryRoot,
    env,
    reject: false,
  });
  expect(exitCode, `${stdout}\n${stderr}`).toBe(0);
  const expected = await readFile(path.join(EXAMPLES, 'expected', `${story}.txt`), 'utf8');
  expect(stdout.replaceAll(/CERT-[0-9A-F]{32}/g, '<certificate>').trim()).toBe(expected.trim());
});

plain.concurrent.for(LANGUAGES)('$name says in one sentence that API_KEY is missing', async (language, { expect }) => {
  const [program = '', ...options] = language.command.split(' ');
  const file = `examples/${language.name}/settle-and-wait.${language.extension}`;
  const ran = await execa(program, [...options, file], { cwd: repositoryRoot, env: { API_KEY: '' }, reject: false });
  expect([ran.exitCode, ran.stderr]).toEqual([1, "Set API_KEY to a key of yours, as in the README's five minutes."]);
});

plain('each story exists in TypeScript and with curl', () => {
  const stories = storiesOf('expected');
  expect(storiesOf('typescript')).toEqual(stories);
  expect(storiesOf('curl')).toEqual(stories);
});
