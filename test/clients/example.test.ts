/** The examples of partners, run against the service: each prints what examples/expected says, in every language. */
import { readdirSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
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

test.concurrent('a story with curl that runs again under its name creates nothing twice', async ({ env, expect }) => {
  const options = { cwd: repositoryRoot, env: { ...env, RUN: 'the-same-run-again' } };
  for (const _ of [1, 2]) await execa('bash', ['examples/curl/reconcile-a-day.sh'], options);
  const { settlements } = createClient({ baseUrl: env.API, apiKey: env.API_KEY });
  expect(await settlements.list({ metadata: { batch: options.env.RUN } }).first(9)).toHaveLength(4);
});

/**
 * Runs commands after `common.sh`, against a service that gives these answers; `asked` are the keys of the requests.
 */
async function withCurl(commands: string, answers: readonly (readonly [status: number, body: object])[]) {
  const asked: unknown[] = [];
  const server = createServer((request, response) => {
    const [status, body] = answers[asked.length] ?? [500, {}];
    asked.push(request.headers['idempotency-key']);
    request.resume().once('end', () => response.writeHead(status, { 'retry-after': '0' }).end(JSON.stringify(body)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const API = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const script = `source examples/curl/common.sh; ${commands}`;
  const options = { cwd: repositoryRoot, env: { API, API_KEY: 'sk_local_x', RUN: 'my-run' }, reject: false };
  const { stdout, stderr, exitCode } = await execa('bash', ['-c', script], options);
  server.close();
  return { stdout, stderr, exitCode, asked };
}

const CREATE = 'create /v2/settle "{}" "$RUN.settlement" | field .settlement_id';

plain.concurrent('curl prints only the answer to the last attempt, and each has the same key', async ({ expect }) => {
  const unavailable = [503, { code: 'temporarily_unavailable' }] as const;
  const ran = await withCurl(CREATE, [unavailable, unavailable, [202, { settlement_id: 'stl_1' }]]);
  expect(ran).toMatchObject({ exitCode: 0, stdout: 'stl_1', asked: Array(3).fill('my-run.settlement') });
});

plain.concurrent.for([
  [429, 'quota_exceeded'],
  [503, 'launch_gates_closed'],
  [409, 'idempotency_key_reused'],
] as const)(
  'curl does not repeat what ended in %i %s, and says how to continue',
  async ([status, code], { expect }) => {
    const { exitCode, asked, stderr } = await withCurl(CREATE, [[status, { code }]]);
    expect([exitCode, asked.length]).toEqual([1, 1]);
    expect(stderr).toContain(`not created: {"code":"${code}"}`);
    expect(stderr).toContain('RUN=my-run');
  },
);

plain('each story exists in TypeScript and with curl', () => {
  const stories = storiesOf('expected');
  expect(storiesOf('typescript')).toEqual(stories);
  expect(storiesOf('curl')).toEqual(stories);
});
