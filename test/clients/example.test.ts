/** The examples in TypeScript, run against the service: each prints what examples/expected says. */
import { readdirSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { expect, test as plain } from 'vitest';
import { createClient } from '../../clients/typescript/index.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { FILE, withStack } from '../support/fixture.ts';
import { startHttpServer } from '../support/http-server.ts';
import { stretched } from '../support/patience.ts';

const EXAMPLES = path.join(repositoryRoot, 'examples');

/** These have no story of their own: what the others share, and a receiver that runs until it is stopped. */
const OTHERS = ['connection', 'receiver'];

const storiesOf = (folder: string): string[] =>
  readdirSync(path.join(EXAMPLES, folder))
    .map((file) => path.parse(file).name)
    .filter((name) => !OTHERS.includes(name))
    .sort();

const STORIES = storiesOf('typescript');

/** Between the outputs of two stories that one process runs. */
const MARK = '---- next story ----';

/** Runs the stories of the arguments one after the other, since a start of Node costs more than any of them. */
const RUN_STORIES = `for (const story of process.argv.slice(1)) {
  await import(story);
  console.log('${MARK}');
}`;

/** What each story prints. */
const test = withStack({ deliveries: true }).extend('printed', FILE, async ({ stack }, { onCleanup }) => {
  const signUp = { name: 'Acme', country: 'JM', contact_email: 'dev@acme.example' };
  const { api_key: apiKey } = await createClient({ baseUrl: stack.baseUrl }).organizations.create(signUp);
  const folder = await mkdtemp(path.join(os.tmpdir(), 'examples-'));
  onCleanup(() => rm(folder, { recursive: true }));
  const env = { API: stack.baseUrl, API_KEY: apiKey, PORT: '0', INTENT_FILE: path.join(folder, 'intent.json') };
  const files = STORIES.map((story) => path.join(EXAMPLES, 'typescript', `${story}.ts`));
  const node = ['--import', 'tsx', '--input-type=module', '-e', RUN_STORIES];
  const { stdout } = await execa(process.execPath, [...node, ...files], { cwd: repositoryRoot, env });
  return stdout.split(MARK);
});

test.for(STORIES)('typescript/%s prints what is expected', async (story, { printed, expect }) => {
  const expected = await readFile(path.join(EXAMPLES, 'expected', `${story}.txt`), 'utf8');
  const text = printed[STORIES.indexOf(story)] ?? '';
  expect(text.replaceAll(/CERT-[0-9A-F]{32}/g, '<certificate>').trim()).toBe(expected.trim());
});

plain('an example in TypeScript says in one sentence that API_KEY is missing', async () => {
  const args = ['--import', 'tsx', 'examples/typescript/settle-and-wait.ts'];
  const ran = await execa(process.execPath, args, { cwd: repositoryRoot, env: { API_KEY: '' }, reject: false });
  expect([ran.exitCode, ran.stderr]).toEqual([1, "Set API_KEY to a key of yours, as in the README's five minutes."]);
});

plain('the story about webhooks ends with an error when no event comes', async () => {
  const made = { webhook_id: 'w', secret: `whsec_${'A'.repeat(43)}=`, recipient_id: 'r', settlement_id: 's' };
  const api = await startHttpServer((response) => response.end(JSON.stringify(made)));
  const args = ['--import', 'tsx', 'examples/typescript/receive-webhooks.ts'];
  const env = { API: api.url, API_KEY: 'sk_local_x', PORT: '0', WAIT_S: '1' };
  const limits = { reject: false, timeout: stretched(20_000) } as const;
  const { exitCode, timedOut } = await execa(process.execPath, args, { cwd: repositoryRoot, env, ...limits });
  await api.close();
  expect({ exitCode, timedOut }).toEqual({ exitCode: 1, timedOut: false });
});

plain('each story exists in TypeScript', () => {
  expect(STORIES).toEqual(storiesOf('expected'));
});
