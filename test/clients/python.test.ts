/**
 * The Python client: its types, its own tests, its package, and what it promises against the running service. The
 * first run installs its packages under `.local/python`.
 */
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { expect, vi } from 'vitest';
import { repositoryRoot } from '../../process/local/place.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { FILE, withStack } from '../support/fixture.ts';
import { acquirePython, PYTHON_DIRECTORY } from '../support/python-program.ts';
import { readSource } from '../support/source.ts';

const PACKAGE = path.join(repositoryRoot, 'clients', 'python');
const SOURCE = path.join(PACKAGE, 'src');
const EXAMPLES = path.join(repositoryRoot, 'examples', 'python');
const PAYROLL = path.join(repositoryRoot, 'examples', 'payroll');

const EVENTS = 20;

const PURPOSE = 'The Python client';
const say = (line: string) => void process.stdout.write(`  ${line}\n`);

const test = withStack({ deliveries: true })
  .extend('python', FILE, async () => {
    const { command, env } = await acquirePython(PURPOSE, say);
    const searched = [env['PYTHONPATH'], SOURCE].join(path.delimiter);
    return { command, env: { ...env, PYTHONPATH: searched, MYPYPATH: SOURCE } };
  })
  /** The blocks of the README as one program: its file. */
  .extend('page', FILE, async ({ python: _python }) => {
    const page = await readFile(path.join(PACKAGE, 'README.md'), 'utf8');
    const blocks = [...page.matchAll(/```python\n(.*?)```/gs)].map(([, code = '']) => code);
    expect(blocks.length).toBeGreaterThan(5);
    const file = path.join(PYTHON_DIRECTORY, 'readme.py');
    await writeFile(file, blocks.join('\n'));
    return file;
  });
test.beforeAll(({ python: _python }) => undefined);

type Python = { readonly command: string; readonly env: Readonly<Record<string, string>> };

/** Runs in the package's folder. @throws Error with everything that it printed, when it fails */
const run = ({ command, env }: Python, args: readonly string[], more: Readonly<Record<string, string>> = {}) =>
  execa(command, args, { cwd: PACKAGE, env: { ...env, ...more }, all: true });

test('the interpreter itself is used, and not a shim of it', async () => {
  const { stdout: interpreter } = await execa('python3', ['-c', 'import sys; print(sys.executable)']);
  const directory = await mkdtemp(path.join(tmpdir(), 'python-shim-'));
  await writeFile(path.join(directory, 'python3'), `#!/bin/sh\nexec ${interpreter} "$@"\n`, { mode: 0o755 });
  vi.stubEnv('PATH', directory);
  try {
    expect((await acquirePython(PURPOSE, say)).command).toBe(interpreter);
  } finally {
    vi.unstubAllEnvs();
    await rm(directory, { recursive: true });
  }
});

test('a Python that is missing, or older than the packages need, is reported in words', async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'python-old-'));
  for (const name of ['python3', 'python'])
    await writeFile(path.join(directory, name), '#!/bin/sh\necho Python 3.9.21\n', { mode: 0o755 });
  try {
    for (const folder of ['/nonexistent', directory]) {
      vi.stubEnv('PATH', folder);
      await expect(acquirePython(PURPOSE, say)).rejects.toThrow(
        'The Python client needs Python 3.10 or newer as python3 on the PATH',
      );
    }
  } finally {
    vi.unstubAllEnvs();
    await rm(directory, { recursive: true });
  }
});

// Together: most of them wait for the service, and the packages of Python take time to load.
test.concurrent("the client's types are strict, and every use in its tests, its page and the examples is typed", async ({
  python,
  page,
}) => {
  const check = ['-m', 'mypy', '--cache-dir', path.join(PYTHON_DIRECTORY, 'mypy-cache')];
  const { stdout } = await run(python, [...check, 'src', 'tests', EXAMPLES, PAYROLL, page]);
  expect(stdout).toContain('Success');
});

test.concurrent("the client's code passes its linter and formatter", async ({ python }) => {
  const files = ['--no-cache', '.', EXAMPLES, PAYROLL];
  await run(python, ['-m', 'ruff', 'check', ...files]);
  const { stdout } = await run(python, ['-m', 'ruff', 'format', '--check', ...files]);
  expect(stdout).toContain('already formatted');
});

test.concurrent("the client's own tests pass", async ({ python }) => {
  const { stdout } = await run(python, ['-m', 'pytest']);
  expect(stdout).toMatch(/\d{3} passed/);
});

test.concurrent("the client's package is complete and typed, and no index accepts it", async ({ python }) => {
  const build =
    'import sys, zipfile; from flit_core import buildapi; ' +
    'wheel = zipfile.ZipFile(sys.argv[1] + "/" + buildapi.build_wheel(sys.argv[1])); ' +
    'print("\\n".join(wheel.namelist())); ' +
    'print(next(wheel.read(name).decode() for name in wheel.namelist() if name.endswith("METADATA")))';
  const { stdout } = await run(python, ['-c', build, PYTHON_DIRECTORY]);
  for (const file of ['py.typed', 'models.py', 'resources.py', 'client.py'])
    expect(stdout).toContain(`settlement_service/${file}\n`);
  expect(stdout).toContain('Classifier: Private :: Do Not Upload');
});

test.concurrent('a receiver verifies every delivery while the secret is rotated', async ({ python, stack }) => {
  const { apiKey } = await stack.api.createCaller('full');
  const { stdout } = await run(python, ['tests/scenarios/rotated_secret.py'], {
    API: stack.baseUrl,
    API_KEY: apiKey,
  });
  const [, verified, events] = /^(\d+) verified of (\d+) events, 0 refused$/.exec(stdout) ?? [stdout];
  expect(Number(events)).toBe(EVENTS);
  expect(Number(verified)).toBeGreaterThanOrEqual(2 * EVENTS);
});

test.concurrent('every block of its page runs', async ({ python, page, stack, partner }) => {
  const { stdout } = await run(python, [page], { API: stack.baseUrl, API_KEY: partner.apiKey });
  expect(stdout).toContain('settled 37829.63 JMD');
  expect(stdout).toContain('too late to cancel, it is settled');
  expect(stdout).toContain('37829.63 unanchored');
});

const STORIES = ['settle-and-wait', 'receive-webhooks', 'reconcile-a-day', 'handle-exceptions', 'consumer-transfer'];
/** Between the outputs of two stories. */
const MARK = '---- next story ----';
/** Runs the programs of the arguments one after the other: the client takes a second to import. */
const RUN_STORIES = `import os, runpy, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
for program in sys.argv[1:]:
    runpy.run_path(program, run_name="__main__")
    print("${MARK}")`;

test.concurrent('the examples run, print what the page of examples shows, and store an intent for its owner alone', async ({
  python,
  stack,
  partner,
}) => {
  const programs = STORIES.map((story) => path.join(EXAMPLES, `${story.replaceAll('-', '_')}.py`));
  const folder = await mkdtemp(path.join(tmpdir(), 'examples-'));
  const intent = path.join(folder, 'intent.json');
  const env = { API: stack.baseUrl, API_KEY: partner.apiKey, PORT: '0', INTENT_FILE: intent };
  const { stdout } = await run(python, ['-c', RUN_STORIES, ...programs], env);
  const printed = stdout.replaceAll(/CERT-[0-9A-F]{32}/g, '<certificate>').split(MARK);
  const expected = STORIES.map((story) => readSource(`examples/expected/${story}.txt`));
  expect(printed.slice(0, -1).map((text) => text.trim())).toEqual(expected.map((text) => text.trim()));
  expect((await stat(intent)).mode & 0o777).toBe(0o600);
  await rm(folder, { recursive: true });
});

test.concurrent('an example says in one sentence that API_KEY is missing', async ({ python }) => {
  const program = path.join(EXAMPLES, 'settle_and_wait.py');
  const ran = await execa(python.command, [program], { env: { ...python.env, API_KEY: '' }, reject: false });
  expect([ran.exitCode, ran.stderr]).toEqual([1, "Set API_KEY to a key of yours, as in the README's five minutes."]);
});

test.concurrent('the receiver of the examples handles what the service sends once, with one of its secrets, and reads no large body', async ({
  python,
  stack,
}) => {
  const { apiKey } = await stack.api.createCaller('full');
  const program = path.join(PACKAGE, 'tests', 'scenarios', 'receiver_example.py');
  const { stdout } = await run(python, [program, path.join(EXAMPLES, 'receiver.py')], {
    API: stack.baseUrl,
    API_KEY: apiKey,
    PORT: String(await freePort()),
  });
  expect(stdout).toBe('settlement.settled, number 1\nsettlement.failed, number 2\n413\n413');
});
