/**
 * The guides and the README promise outputs. Their own lines are run against a stack, those of the guides in one shell,
 * in the order of the guides.
 */
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { execa } from 'execa';
import { expect, test as plain } from 'vitest';
import { GUIDES, GUIDES_DIRECTORY } from '../../api/pages/guide.ts';
import { SETTLEMENT_STATUSES } from '../../domain/settlement/state.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { GENERATED } from '../../scripts/generate/document.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { withStack } from '../support/fixture.ts';
import { stretched } from '../support/patience.ts';
import { readSource, sourceFiles } from '../support/source.ts';

const test = withStack();

const guide = (name: string): string => readSource(`docs/guides/${name}.md`);

/** A block of commands, with the output that the page shows below it. */
type Example = { readonly commands: string; readonly output: string };

/** Between the outputs of two blocks. */
const MARK = '---- next block ----';
const RUN_TIMEOUT_MS = stretched(110_000);

const examplesOf = (markdown: string): Example[] =>
  [...markdown.matchAll(/```sh\n((?:(?!```).)*?)```\n\n```text\n(.*?)```/gs)].map(([, commands = '', output = '']) => ({
    commands,
    output,
  }));

/** Times, ids and digests differ in each run. */
const general = (output: string): string =>
  output
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replaceAll(/CERT-[0-9A-F]{32}/g, '<certificate>')
    .replaceAll(/stl_[a-z2-7]{32}/g, '<settlement>')
    .trim();

/** Runs the blocks in one Bash against this API, and compares each output with the one of the page. */
async function expectExamples(examples: readonly Example[], baseUrl: string): Promise<void> {
  const script = examples.map(({ commands }) => `${commands}echo '${MARK}'`).join('\n');
  const { stdout, stderr, exitCode } = await execa(
    'bash',
    ['-eu', '-o', 'pipefail', '-c', script.replaceAll('http://127.0.0.1:3000', baseUrl)],
    { cwd: repositoryRoot, reject: false, timeout: RUN_TIMEOUT_MS },
  );
  expect(exitCode, `${stdout}\n${stderr}`).toBe(0);
  const outputs = stdout.split(MARK).slice(0, -1).map(general);
  expect(outputs).toEqual(examples.map(({ output }) => general(output)));
}

test('every example of the guides runs, and prints what the guide shows', async ({ stack }) => {
  const examples = GUIDES.flatMap(({ name }) => examplesOf(guide(name)));
  expect(examples.length).toBeGreaterThan(12);
  await expectExamples(examples, stack.baseUrl);
});

test('the quickstart in one shell twice shows why the second settlement is refused, and ends', async ({ stack }) => {
  const blocks = examplesOf(guide('quickstart')).map(({ commands }) => commands);
  const [signUp = '', register = '', , settle = ''] = blocks;
  const script = [signUp, register, settle, register, settle]
    .join('')
    .replaceAll('http://127.0.0.1:3000', stack.baseUrl);
  const { stdout, stderr, timedOut } = await execa('bash', ['-c', script], {
    reject: false,
    timeout: stretched(20_000),
    cwd: repositoryRoot,
  });
  expect(timedOut).toBe(false);
  expect(stdout.split('\n').filter((line) => line === 'settled')).toHaveLength(1);
  expect(stderr).toContain('"code":"idempotency_key_reused"');
  expect(stdout).not.toContain('undefined');
});

test.for(['SIGHUP', 'SIGINT', 'SIGTERM'] as const)(
  "the guide's listener unsubscribes when it is stopped by %s",
  async (signal, { stack, api }) => {
    const caller = await api.createCaller();
    const subscriptions = async () => (await api.call(caller, 'GET', '/v1/webhooks')).json();
    const args = ['listen', '--port', String(await freePort()), '--url', stack.baseUrl];
    const listener = execa(process.execPath, ['--import', 'tsx', 'scripts/sandbox.ts', ...args], {
      cwd: repositoryRoot,
      env: { API_KEY: caller.apiKey },
      reject: false,
    });
    await Promise.race([once(listener.stderr, 'data'), listener]);
    expect(await subscriptions()).toHaveLength(1);
    listener.kill(signal);
    expect((await listener).exitCode).toBe(0);
    expect(await subscriptions()).toEqual([]);
  },
);

test('a listener ends the subscription that a killed one left at its port, and no other', async ({ stack, api }) => {
  const caller = await api.createCaller();
  const subscriptions = async (): Promise<readonly { webhook_id: string; url: string }[]> =>
    (await api.call(caller, 'GET', '/v1/webhooks')).json();
  const listen = async (port: number) => {
    const args = ['listen', '--port', String(port), '--url', stack.baseUrl];
    const listener = execa(process.execPath, ['--import', 'tsx', 'scripts/sandbox.ts', ...args], {
      cwd: repositoryRoot,
      env: { API_KEY: caller.apiKey },
      reject: false,
    });
    await Promise.race([once(listener.stderr, 'data'), listener]);
    const end = async () => {
      listener.kill('SIGKILL');
      await listener;
    };
    return { url: `http://127.0.0.1:${port}/`, end };
  };
  const port = await freePort();
  const [first, other] = [await listen(port), await listen(await freePort())];
  const before = await subscriptions();
  await first.end();
  const again = await listen(port);
  const after = await subscriptions();
  await Promise.all([other.end(), again.end()]);
  expect(after.map(({ url }) => url)).toEqual([again.url, other.url]);
  expect(after[1]).toEqual(before[0]);
  expect(after[0]?.webhook_id).not.toBe(before[1]?.webhook_id);
});

plain('every guide is listed, and begins with its title', () => {
  expect(new Set(readdirSync(GUIDES_DIRECTORY))).toEqual(new Set(GUIDES.map(({ name }) => `${name}.md`)));
  for (const { name, title } of GUIDES)
    expect(guide(name).replace(`${GENERATED}\n\n`, '').split('\n')[0]).toBe(`# ${title}`);
});

plain('every link of a guide leads to another guide', () => {
  for (const { name } of GUIDES) {
    const links = [...guide(name).matchAll(/(?<!!\[[^\]]*)\]\(([^)]+)\)/g)].map(
      ([, target]) => path.parse(target ?? '').name,
    );
    expect(links.filter((link) => !GUIDES.some((other) => other.name === link))).toEqual([]);
  }
});

plain("the picture of a settlement's life has every status", () => {
  const picture = readSource('docs/images/settlement-way.svg');
  expect(guide('settlement')).toContain('](../images/settlement-way.svg)');
  expect(SETTLEMENT_STATUSES.filter((status) => !picture.includes(`>${status}<`))).toEqual([]);
});

const README = readSource('README.md');

function sectionOf(title: string): string {
  const [, section = ''] = README.split(`\n## ${title}\n`);
  return section.split('\n## ')[0] ?? '';
}

test('every line of the five minutes runs, and prints what the README shows', async ({ stack }) => {
  const examples = examplesOf(sectionOf('Five minutes'));
  expect(examples.length).toBeGreaterThan(1);
  await expectExamples(examples, stack.baseUrl);
});

const pages = ['README.md', 'CONTRIBUTING.md'].map((file) => [file, readSource(file)] as const);

plain.each(pages)('every npm command of %s exists', (_, page) => {
  const { scripts }: { scripts: Record<string, string> } = JSON.parse(readSource('package.json'));
  const named = [...page.matchAll(/npm run (?:--silent )?([\w:-]+)/g)].map(([, name]) => name ?? '');
  expect(named.length).toBeGreaterThan(3);
  expect(named.filter((name) => !(name in scripts))).toEqual([]);
});

plain.each([
  ['sandbox', 'scripts/sandbox.ts'],
  ['ops', 'ops/main.ts'],
])('every command of npm run %s that the README or a page of docs names exists', async (script, file) => {
  const { stdout } = await execa(process.execPath, ['--import', 'tsx', file, '--help'], { cwd: repositoryRoot });
  const existing = [...stdout.matchAll(/^ {2}([a-z][\w-]*)/gm)].map(([, name]) => name);
  expect(existing.length).toBeGreaterThan(4);
  const texts = ['README.md', ...sourceFiles('.md').filter((page) => page.startsWith('docs/'))].map(readSource);
  const command = new RegExp(`npm run (?:--silent )?${script} --\\s+([a-z][\\w-]*)`, 'g');
  const named = texts.flatMap((text) => [...text.matchAll(command)].map(([, name]) => name));
  expect(named.length).toBeGreaterThan(3);
  expect(named.filter((name) => !existing.includes(name))).toEqual([]);
});

plain.each(pages)('every file that %s links to exists', (_, page) => {
  const links = [...page.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map(([, file]) => file ?? '');
  expect(links.length).toBeGreaterThan(3);
  for (const file of links) expect(() => readSource(file), file).not.toThrow();
});

plain('the first screen of the README says how to start and how to test, and which Node is needed', () => {
  const lines = README.split('\n');
  expect(lines.length).toBeLessThanOrEqual(151);
  const screen = lines.slice(0, 24).join('\n');
  expect(screen).toContain('npm ci && npm start');
  expect(screen).toContain('npm ci && npm test');
  const { engines }: { engines: { node: string } } = JSON.parse(readSource('package.json'));
  expect(engines.node).toBe('>=20.19.0');
  expect(screen).toMatch(/Node 24 is recommended\. Node 20\.19 works/);
});
