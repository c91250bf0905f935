/**
 * `npm run record`: writes docs/recordings: what `npm start`, `npm run demo` and `npm run sandbox -- watch` print in a
 * terminal and in a pipe. No stack of this clone may be running.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { execa } from 'execa';
import { CommandError, command, EXIT, type Printer, runProgram, standardOutput } from '../../process/command-line.ts';
import { repositoryRoot } from '../../process/place.ts';
import { createClient, requireStatus } from '../../scripts/partner/client.ts';
import { type Partner, signUp } from '../../scripts/partner/partner.ts';
import { borrowStack } from '../../scripts/stack/borrowed.ts';

const TERMINAL = path.join(import.meta.dirname, 'terminal.py');
const DIRECTORY = path.join(repositoryRoot, 'docs', 'recordings');
/** The last line of the banner. */
const READY = 'Ctrl-C';
const STOP_TIMEOUT_MS = 60_000;

type Line = { readonly name: string; readonly words: readonly string[]; readonly env?: Record<string, string> };

const npm = (words: readonly string[]): string[] => ['run', '--silent', ...words];

/** @param until the program is stopped when it has printed this; by default it ends by itself */
async function inTerminal({ words, env = {} }: Line, until = ''): Promise<string> {
  const options = { cwd: repositoryRoot, env: { ...env, TERM: 'xterm' }, reject: false } as const;
  const { stdout, stderr, exitCode } = await execa('python3', [TERMINAL, until, 'npm', ...npm(words)], options);
  if (exitCode !== 0)
    throw new CommandError(EXIT.refused, `${words.join(' ')} failed in a terminal:\n${stdout}${stderr}`);
  return stdout;
}

async function inPipe({ words, env = {} }: Line, until?: string): Promise<string> {
  const program = execa('npm', npm(words), { cwd: repositoryRoot, env, reject: false, all: true });
  let printed = '';
  program.all.on('data', (chunk) => {
    printed += String(chunk);
  });
  const end = Date.now() + STOP_TIMEOUT_MS;
  while (until !== undefined && !printed.includes(until) && program.exitCode === null && Date.now() < end)
    await delay(50);
  if (until !== undefined) program.kill('SIGINT');
  const { all, exitCode } = await program;
  if (exitCode !== 0) throw new CommandError(EXIT.refused, `${words.join(' ')} failed in a pipe:\n${all}`);
  return all;
}

async function record(print: Printer['print'], line: Line, until?: string): Promise<void> {
  const shown = `$ npm run ${line.words.map((word) => (word.includes(' ') ? `'${word}'` : word)).join(' ')}`;
  for (const [place, run] of [['terminal', inTerminal] as const, ['pipe', inPipe] as const]) {
    const file = path.join(DIRECTORY, `${line.name}-${place}.txt`);
    const text = (await run(line, until))
      .replaceAll(repositoryRoot, '.')
      .replaceAll(/[ \t]+$/gm, '')
      .trim();
    writeFileSync(file, `${shown}\n${text}\n`);
    print(`wrote ${path.relative(repositoryRoot, file)}`);
  }
}

/** A settlement whose money comes in two parts, so that there is something to watch. */
async function settle(partner: Partner): Promise<string> {
  const recipient = await partner.createRecipient();
  const body = { corridor: 'US-JM', amount: '250.00', recipient_id: recipient, payout_rail: 'bank_transfer' };
  return (await partner.settle({ ...body, payment_method: 'card', card_token: 'tok_partial' })).settlement_id;
}

async function recordAll({ print }: Printer): Promise<void> {
  mkdirSync(DIRECTORY, { recursive: true });
  await record(print, { name: 'start', words: ['start'] }, READY);
  const stack = await borrowStack(undefined, print);
  const client = createClient({ baseUrl: () => stack.baseUrl, onRetry: () => undefined });
  try {
    const partner = await signUp(async (asked) => requireStatus(asked, await client.send(asked)));
    await record(print, { name: 'demo', words: ['demo'] });
    const words = ['sandbox', '--', 'watch', await settle(partner)];
    await record(print, { name: 'watch', words, env: { API_KEY: partner.apiKey } });
  } finally {
    await client.close();
    await stack.giveBack();
  }
}

const program = command({
  name: 'record',
  description: 'Writes docs/recordings: what the first commands print, in a terminal and in a pipe.',
  takes: {},
  json: false,
  run: async (printer: Printer) => {
    await recordAll(printer);
    return EXIT.done;
  },
});

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) => act(printer));
