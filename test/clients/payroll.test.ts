/**
 * The payroll of examples/payroll, in each language: killed twice in the middle and run again, each line is paid once.
 * What is not paid as the file says is named.
 */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
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

const LANGUAGES = ['typescript', 'python'] as const;
type Language = (typeof LANGUAGES)[number];

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
  })
  /** A new organization: its client, and the environment of a payroll. */
  .extend('payer', async ({ stack }) => {
    const { baseUrl } = stack;
    const signUp = { name: 'Acme', country: 'JM', contact_email: 'dev@acme.example' };
    const { api_key: apiKey } = await createClient({ baseUrl }).organizations.create(signUp);
    return { client: createClient({ baseUrl, apiKey }), env: { API: baseUrl, API_KEY: apiKey } };
  })
  /** Runs the payroll of some lines: what it prints. */
  .extend(
    'pay',
    ({ commands, folder }) =>
      async (language: Language, lines: readonly string[], more: NodeJS.ProcessEnv) => {
        const { run, env } = commands[language];
        const [program = '', ...args] = run;
        const file = path.join(folder, 'lines.csv');
        await writeFile(file, ['reference,name,corridor,rail,account,currency,amount,method', ...lines, ''].join('\n'));
        const options = { cwd: repositoryRoot, env: { ...env, ...more }, reject: false };
        return await execa(program, [...args, path.join(folder, 'kept'), file], options);
      },
  );

test.concurrent.for(LANGUAGES)(
  'a payroll in %s that is killed and run again pays each line once, verifies once whom it must, and keeps certificates',
  async (language, { commands, payer, folder, expect }) => {
    const { client } = payer;
    const { run, env } = commands[language];
    const [program = '', ...args] = run;
    const options = { cwd: repositoryRoot, env: { ...env, ...payer.env }, reject: false };
    const start = () => execa(program, [...args, folder], options);
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

/** A line for somebody in Jamaica, paid by card. */
const lineOf = (reference: string, amount: string, name = 'Marcia Brown', account = '004512378') =>
  [reference, name, 'US-JM', 'bank_transfer', account, 'JMD', amount, 'card'].join();

test.concurrent.for(LANGUAGES)(
  'a payroll in %s sends every line whatever becomes of another one, and names each that is not paid as the file says',
  async (language, { payer: { client, env: own }, pay, expect }) => {
    const person = { kind: 'contractor', entity_type: 'individual', name: 'Marcia Brown', country: 'JM' } as const;
    const details = { bank_name: 'Example Bank', account_number: '004512378', currency: 'JMD' } as const;
    const { recipient_id } = await client.recipients.create({ ...person, bank_details: details });
    const { settlement_id: surplus } = await client.settlements.create({
      ...{ corridor: 'US-JM', amount: '70.00', recipient_id, payment_method: 'card', payout_rail: 'bank_transfer' },
      ...{ card_token: 'tok_visa', reference: 'PAY-999', metadata: { batch: 'payroll-2026-11' } },
    });
    await client.settlements.wait(surplus);

    // As many as are sent at a time never end.
    const slow = [1, 2, 3, 4, 5].map((number) => lineOf(`SLOW-${number}`, '100.00', 'Ann PAYOUT PENDING'));
    const lines = [
      ...slow,
      lineOf('PAY-006', '250'),
      lineOf('PAY-007', '310.5'),
      lineOf('PAY-008', '90.00', 'Ann', ''),
      lineOf('PAY-009', '90.00').replace(/[a-z]+$/, 'wire'),
    ];
    const env = { ...own, WAIT_S: '2' };
    await pay(language, lines, env);
    for (const { reference, settlement_id } of await client.settlements.list().first(lines.length))
      await client.settlements.wait(settlement_id, {
        until: reference?.startsWith('SLOW') ? ['paying_out'] : reference === 'PAY-009' ? ['awaiting_funds'] : [],
      });
    const { stdout, stderr, exitCode } = await pay(language, lines, env);
    expect(exitCode, stderr).toBe(0);
    expect(stdout.split('\n')).toEqual([
      ...slow.map((_, index) => `SLOW-${index + 1} Ann PAYOUT PENDING: STILL OPEN, paying_out`),
      expect.stringMatching(/^PAY-006 Marcia Brown: 250\.00 USD, \d+\.\d\d JMD$/),
      expect.stringMatching(/^PAY-007 Marcia Brown: 310\.50 USD, \d+\.\d\d JMD$/),
      'PAY-008 Ann: NOT PAID, unknown to the service',
      'PAY-009 Marcia Brown: STILL OPEN, awaiting_funds',
      `PAY-999 ${surplus}: SURPLUS, settled`,
      'paid 560.50 USD',
      '9 lines, 9 settlements, 8 to look at',
    ]);
    expect(stderr).toMatch(/^SLOW-1: /m);
    expect(stderr).toMatch(/^PAY-008: 422: .*account_number/m);
  },
);

test.concurrent.for(LANGUAGES)(
  'a corrected line of a payroll in %s is paid as it is now if nothing was accepted for it, and else named, never paid twice',
  async (language, { payer: { client, env }, pay, folder, expect }) => {
    const payeeOf = async (reference: string) => {
      const [one, ...others] = await client.settlements.list({ reference }).first(9);
      expect(others).toEqual([]);
      const { amount, payee, status } = await client.settlements.get(one?.settlement_id ?? '');
      return [status, amount, payee.name, payee.account_last4];
    };

    // More than a card can pay: the order is prepared, and refused.
    const refused = await pay(language, [lineOf('PAY-001', '20000'), lineOf('PAY-002', '250.0')], env);
    expect(refused.stdout).toContain('PAY-001 Marcia Brown: NOT PAID, unknown to the service');
    expect(refused.stdout).toContain('2 lines, 1 settlements, 1 to look at');

    const lines = [
      lineOf('PAY-001', '200', 'Errol Smith', '004519999'),
      lineOf('PAY-002', '300', 'Marcia Brown', '004519999'),
    ];
    const corrected = await pay(language, lines, env);
    expect(corrected.stdout).toMatch(/^PAY-001 Errol Smith: 200\.00 USD, /);
    expect(await payeeOf('PAY-001')).toEqual(['settled', '200.00', 'Errol Smith', '9999']);
    expect(corrected.stdout).toContain(
      'PAY-002 Marcia Brown: paid, but prepared as account 004512378, amount 250.00\npaid 450.00 USD\n',
    );
    expect(await payeeOf('PAY-002')).toEqual(['settled', '250.00', 'Marcia Brown', '2378']);

    await rm(path.join(folder, 'kept'), { recursive: true });
    const lost = await pay(language, [lineOf('PAY-002', '250', 'Marcia Brown', '004519999')], env);
    expect(lost.stdout).toContain('PAY-002 Marcia Brown: paid, but to another recipient');
    expect(await payeeOf('PAY-002')).toEqual(['settled', '250.00', 'Marcia Brown', '2378']);
  },
);

test.concurrent.for(
  LANGUAGES.flatMap((language) => [
    {
      language,
      words: 'two lines have this reference',
      lines: [lineOf('PAY-001', '1.00'), lineOf('PAY-001', '2.00', 'Errol Smith')],
    },
    { language, words: 'the amount must be as', lines: [lineOf('PAY-001', '1e3')] },
    {
      language,
      // Its lines end as those of a spreadsheet. Its other cells are known.
      words: 'the amount must be as 310,',
      lines: [`${lineOf('PAY-001', '1e3')}\r`, lineOf('PAY-002', '1.00')],
    },
  ]),
)(
  'a payroll in $language is refused before anything is sent: $words',
  async ({ language, words, lines }, { pay, expect }) => {
    // Nothing listens there.
    const { exitCode, stderr } = await pay(language, lines, { API: 'http://127.0.0.1:9', API_KEY: 'sk_local_x' });
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(`PAY-001: ${words}`)]);
  },
);

plain('the guide shows how the payroll ends, and each program has at most 220 lines', () => {
  const [, shown = 'none'] = /```text\n(.*?)```/s.exec(readSource('docs/guides/payroll.md')) ?? [];
  expect(readSource('examples/payroll/expected.txt').endsWith(shown)).toBe(true);
  for (const program of ['payroll.ts', 'payroll.py'])
    expect(readSource(`examples/payroll/${program}`).split('\n').length).toBeLessThanOrEqual(221);
});
