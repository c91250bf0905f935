/**
 * The guides and the README promise outputs. Their own lines are run against a stack, those of the guides in one shell,
 * in the order of the guides.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { expect, test as plain } from 'vitest';
import { signWebhook } from '../../activities/webhook-signature.ts';
import { GUIDES, GUIDES_DIRECTORY } from '../../api/pages/guide.ts';
import { ERROR_CODES } from '../../domain/error.ts';
import { SETTLEMENT_STATUSES } from '../../domain/settlement/state.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { GENERATED } from '../../scripts/generate/document.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { withStack } from '../support/fixture.ts';
import { examplesOf, expectExamples } from '../support/page-example.ts';
import { stretched } from '../support/patience.ts';
import { readSource, sourceFiles } from '../support/source.ts';
import { until } from '../support/webhook.ts';

const test = withStack();

const guide = (name: string): string => readSource(`docs/guides/${name}.md`);
const codes = (text: string): Set<string> => new Set([...text.matchAll(/`([a-z_]+)`/g)].map(([, code = '']) => code));

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

plain.each([
  ['js', process.execPath, 'receiver.mjs'],
  ['python', 'python3', 'receiver.py'],
])("the guide's receiver in %s outlives a request that hangs and breaks off", async (language, program, file) => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'guide-'));
  const source = path.join(folder, file);
  const [, code = ''] = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'ms').exec(guide('webhooks')) ?? [];
  await writeFile(source, code);
  const port = await freePort();
  const key = Buffer.alloc(32, 7);
  const env = { ...process.env, WEBHOOK_SECRET: `whsec_${key.toString('base64')}`, PORT: String(port) };
  const receiver = spawn(program, [source], { env, stdio: 'ignore' });
  const deliver = async (): Promise<number> => {
    const [body, timestamp] = [Buffer.from('{"type":"webhook.ping"}'), Math.floor(Date.now() / 1_000)];
    const headers = {
      'webhook-id': 'one',
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signWebhook([key], { id: 'one', timestamp, body }),
    };
    const signal = AbortSignal.timeout(stretched(5_000));
    return (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body, signal })).status;
  };
  try {
    await until(
      () => deliver().catch(() => undefined),
      (status) => status !== undefined,
    );
    const broken = net.connect(port, '127.0.0.1').resume();
    broken.write('POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nabc');
    await once(broken, 'connect');
    expect(await deliver()).toBe(204);
    broken.end();
    await once(broken, 'close');
    expect(await deliver()).toBe(204);
  } finally {
    receiver.kill();
    await rm(folder, { recursive: true });
  }
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

plain('the guides name every status of a settlement and every code of a refusal', () => {
  const [, table = ''] = guide('settlement').split('| status |');
  expect(SETTLEMENT_STATUSES.filter((status) => !codes(table).has(status))).toEqual([]);
  const picture = readSource('docs/images/settlement-way.svg');
  expect(guide('settlement')).toContain('](../images/settlement-way.svg)');
  expect(SETTLEMENT_STATUSES.filter((status) => !picture.includes(`>${status}<`))).toEqual([]);
  expect(ERROR_CODES.filter((code) => !codes(guide('errors')).has(code))).toEqual([]);
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
