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

/** Those with curl first: Vitest runs five tests at once, and all in TypeScript wait for one process. */
const LANGUAGES = ['curl', 'typescript'] as const;

/** Between the outputs of two stories that one process runs. */
const MARK = '---- next story ----';

/** Runs the stories of the arguments one after the other, since a start of Node costs more than any of them. */
const RUN_STORIES = `for (const story of process.argv.slice(1)) {
  await import(story);
  console.log('${MARK}');
}`;

const test = withStack({ deliveries: true })
  .extend('env', FILE, async ({ stack }, { onCleanup }) => {
    const signUp = { name: 'Acme', country: 'JM', contact_email: 'dev@acme.example' };
    const { api_key: apiKey } = await createClient({ baseUrl: stack.baseUrl }).organizations.create(signUp);
    const folder = await mkdtemp(path.join(os.tmpdir(), 'examples-'));
    onCleanup(() => rm(folder, { recursive: true }));
    return { API: stack.baseUrl, API_KEY: apiKey, PORT: '0', INTENT_FILE: path.join(folder, 'intent.json') };
  })
  /** What each story in TypeScript prints. They run while those with curl run. */
  .extend('typescript', FILE, ({ env }) => {
    const files = storiesOf('typescript').map((story) => path.join(EXAMPLES, 'typescript', `${story}.ts`));
    const node = ['--import', 'tsx', '--input-type=module', '-e', RUN_STORIES];
    const ran = execa(process.execPath, [...node, ...files], { cwd: repositoryRoot, env, reject: false, all: true });
    return async (story: string) => {
      const { failed, stdout, all } = await ran;
      if (failed) throw new Error(all);
      return stdout.split(MARK)[storiesOf('typescript').indexOf(story)] ?? '';
    };
  })
  .extend('curl', FILE, ({ env }) => {
    return async (story: string) =>
      (await execa('bash', [`examples/curl/${story}.sh`], { cwd: repositoryRoot, env })).stdout;
  });

const all = LANGUAGES.flatMap((language) => storiesOf(language).map((story) => ({ language, story })));

test.concurrent.for(all)('$language/$story prints what is expected', async (example, { typescript, curl, expect }) => {
  const printed = await { typescript, curl }[example.language](example.story);
  const expected = await readFile(path.join(EXAMPLES, 'expected', `${example.story}.txt`), 'utf8');
  expect(printed.replaceAll(/CERT-[0-9A-F]{32}/g, '<certificate>').trim()).toBe(expected.trim());
});

plain.concurrent.for([
  ['typescript', process.execPath, '--import', 'tsx', 'examples/typescript/settle-and-wait.ts'],
  ['curl', 'bash', 'examples/curl/settle-and-wait.sh'],
] as const)('%s says in one sentence that API_KEY is missing', async ([, program, ...args], { expect }) => {
  const ran = await execa(program, args, { cwd: repositoryRoot, env: { API_KEY: '' }, reject: false });
  expect([ran.exitCode, ran.stderr]).toEqual([1, "Set API_KEY to a key of yours, as in the README's five minutes."]);
});

plain('each story exists in TypeScript and with curl', () => {
  const stories = storiesOf('expected');
  expect(storiesOf('typescript')).toEqual(stories);
  expect(storiesOf('curl')).toEqual(stories);
});
