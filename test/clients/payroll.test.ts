/** The payroll of examples/payroll, in each language: killed twice in the middle and run again, each line is paid once. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { execa } from 'execa';
import { expect, test as plain } from 'vitest';
import { certificates, createClient } from '../../clients/typescript/index.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { FILE, withStack } from '../support/fixture.ts';
import { acquirePython } from '../support/python-program.ts';
import { readSource } from '../support/source.ts';

const PAYROLL = path.join(repositoryRoot, 'examples', 'payroll');
const LINES = 25;
/** One is refused. */
const PAID = LINES - 1;
/** In the currency of the payer, from which on a recipient must be verified, and how many lines have so much. */
const VERIFIED_FROM = 1_000;
const LARGE = 2;
/** The program is killed when it has stored so many intents. */
const KILLED_AT = [4, 15];

const test = withStack()
  .extend('commands', FILE, async () => {
    const { command, env } = await acquirePython('The payroll in Python', () => undefined);
    const source = path.join(repositoryRoot, 'clients', 'python', 'src');
    return {
      typescript: { run: [process.execPath, '--import', 'tsx', path.join(PAYROLL, 'payroll.ts')], env: {} },
      python: {
        run: [command, path.join(PAYROLL, 'payroll.py')],
        env: { ...env, PYTHONPATH: [env['PYTHONPATH'], source].join(path.delimiter) },
      },
    };
  })
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  .extend('folder', async ({}, { onCleanup }) => {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'payroll-'));
    onCleanup(() => rm(folder, { recursive: true }));
    return folder;
  });

test.concurrent.for(['typescript', 'python'] as const)(
  'a payroll in %s that is killed and run again pays each line once, verifies once whom it must, and keeps certificates',
  async (language, { stack, commands, folder, expect }) => {
    const { baseUrl } = stack;
    const signUp = { name: 'Acme', country: 'JM', contact_email: 'dev@acme.example' };
    const { api_key: apiKey } = await createClient({ baseUrl }).organizations.create(signUp);
    const { run, env } = commands[language];
    const [program = '', ...args] = run;
    const start = () =>
      execa(program, [...args, folder], {
        cwd: repositoryRoot,
        env: { ...env, API: baseUrl, API_KEY: apiKey },
        reject: false,
      });
    const kept = async (end: string) => (await readdir(folder)).filter((file) => file.endsWith(end));

    for (const intents of KILLED_AT) {
      const running = start();
      while ((await kept('.intent.json')).length < intents && running.exitCode === undefined) await delay(5);
      running.kill('SIGKILL');
      expect((await running).signal).toBe('SIGKILL');
    }
    const { stdout, stderr, exitCode } = await start();
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toBe(readSource('examples/payroll/expected.txt').trim());

    const client = createClient({ baseUrl, apiKey });
    const settlements = await client.settlements.list().first(2 * LINES);
    expect(settlements).toHaveLength(LINES);
    expect(new Set(settlements.map(({ reference }) => reference)).size).toBe(LINES);
    expect(await client.recipients.list().first(2 * LINES)).toHaveLength(LINES);
    const large = settlements.filter(({ amount }) => Number(amount) >= VERIFIED_FROM);
    expect(large).toHaveLength(LARGE);
    for (const { settlement_id: id, recipient_id: recipientId } of large) {
      const { timeline } = await client.settlements.get(id);
      expect(timeline.map(({ status }) => status)).toContain('compliance_hold');
      const { verifications } = await client.verifications.status(recipientId);
      expect(verifications.map(({ status }) => status)).toEqual(['verified']);
    }
    const keys = await client.certificates.keys();
    const files = await kept('.certificate.json');
    expect(files).toHaveLength(PAID);
    for (const name of files) {
      const file = await readFile(path.join(folder, name));
      const reference = name.replace('.certificate.json', '');
      const settlementId = settlements.find((one) => one.reference === reference)?.settlement_id;
      expect(certificates.verify({ file }, keys, { settlementId }).valid).toBe(true);
    }
  },
);

plain('the guide shows how the payroll ends, and each program has at most 120 lines', () => {
  const [, shown = 'none'] = /```text\n(.*?)```/s.exec(readSource('docs/guides/payroll.md')) ?? [];
  expect(readSource('examples/payroll/expected.txt').endsWith(shown)).toBe(true);
  for (const program of ['payroll.ts', 'payroll.py'])
    expect(readSource(`examples/payroll/${program}`).split('\n').length).toBeLessThanOrEqual(121);
});
