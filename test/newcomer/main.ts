/**
 * `npm run newcomer`: what a person with only Node, Python and git sees. Clones the committed state of this repository,
 * with an empty home and without this machine's programs, and goes by the README's own lines to a settled settlement.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, symlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { flag, type ValuesOf } from '../../ops/command-line/parameter.ts';
import {
  CommandError,
  command,
  EXIT,
  type Printer,
  runProgram,
  standardOutput,
} from '../../ops/command-line/program.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { findOnPath } from '../../scripts/stack/program-path.ts';
import { inRunFolder, markOfRun } from '../support/run-folder.ts';

/** In addition to Node, Python and git: what every Linux and macOS has, and npm and the embedded PostgreSQL use. */
const BASIC_TOOLS = ['sh', 'id', 'chmod', 'cat', 'cp', 'env', 'uname'];
const PROGRAMS = ['git', 'npm', 'npx', ...BASIC_TOOLS];
const READY_TIMEOUT_MS = 300_000;
const POLL_MS = 50;

const TAKES = { keeps: flag('--keep', 'keep the clone, and print where it is') };

/** A folder for the clone, an empty home, and a PATH with nothing but what a newcomer has. */
async function createMachine(parent: string) {
  const folder = mkdtempSync(path.join(parent, 'newcomer-'));
  chmodSync(folder, 0o755);
  const [home, programs] = [path.join(folder, 'home'), path.join(folder, 'programs')];
  for (const made of [home, programs]) mkdirSync(made);
  for (const name of PROGRAMS) {
    const found = findOnPath(name, process.env);
    if (found) symlinkSync(found, path.join(programs, name));
  }
  symlinkSync(process.execPath, path.join(programs, 'node'));
  // The program itself: a shim of a version manager needs its home.
  const { stdout: python } = await execa('python3', ['-c', 'import sys; print(sys.executable)']);
  symlinkSync(python, path.join(programs, 'python3'));
  const env = { PATH: programs, HOME: home, LANG: 'C.UTF-8', ...markOfRun() };
  return { folder, clone: path.join(folder, 'clone'), env };
}

type Machine = Awaited<ReturnType<typeof createMachine>>;

async function timed<Value>(what: string, { print }: Printer, work: () => Promise<Value>): Promise<Value> {
  const startedAt = performance.now();
  const value = await work();
  print(`${what.padEnd(40)} ${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(6)} s`);
  return value;
}

async function run({ clone, env }: Machine, program: string, ...args: string[]): Promise<string> {
  const options = { cwd: clone, env, extendEnv: false, all: true, reject: false } as const;
  const { exitCode, all } = await execa(program, args, options);
  if (exitCode !== 0) throw new CommandError(EXIT.refused, `${program} ${args.join(' ')} failed:\n${all}`);
  return all;
}

/** Starts the stack, and returns when it says that it is ready. */
async function start({ clone, env }: Machine): Promise<{ readonly output: string; readonly child: ChildProcess }> {
  // A process group of its own, as a terminal gives to a command: Ctrl-C reaches every process in it.
  const child = spawn('npm', ['start'], { cwd: clone, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += String(chunk);
    });
  const until = performance.now() + READY_TIMEOUT_MS;
  while (!/^Ready in /m.test(output)) {
    if (child.exitCode !== null || performance.now() > until) {
      await stop(child);
      throw new CommandError(EXIT.refused, `npm start was not ready:\n${output}`);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return { output, child };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.pid === undefined) return;
  const ended = once(child, 'exit');
  process.kill(-child.pid, 'SIGINT');
  await ended;
}

async function play(printer: Printer, machine: Machine): Promise<void> {
  const { print } = printer;
  const cloned = ['clone', '--quiet', repositoryRoot, machine.clone];
  await timed('git clone', printer, () => run({ ...machine, clone: machine.folder }, 'git', ...cloned));
  await timed('npm ci', printer, () => run(machine, 'npm', 'ci'));
  for (const which of ['first', 'second']) {
    const { output, child } = await timed(`npm start, the ${which} time, until ready`, printer, () => start(machine));
    try {
      for (const line of output.split('\n').filter((each) => /^\S .+\[[\d.hms ]+\]$/.test(each))) print(`  ${line}`);
      if (which === 'first') {
        const story = await timed('npm run demo', printer, () => run(machine, 'npm', 'run', 'demo'));
        if (!story.includes('Every answer is as documented.')) throw new CommandError(EXIT.refused, story);
      }
    } finally {
      await timed('Ctrl-C', printer, () => stop(child));
    }
  }
}

const program = command({
  name: 'newcomer',
  description: 'Clones this repository on a bare machine, starts it twice, and settles. Prints the time of each part.',
  takes: TAKES,
  json: false,
  run: (printer: Printer, { keeps }: ValuesOf<typeof TAKES>) => {
    const outside = os.tmpdir();
    return inRunFolder(async () => {
      const machine = await createMachine(keeps ? outside : os.tmpdir());
      try {
        await play(printer, machine);
        return EXIT.done;
      } finally {
        if (keeps) printer.print(`The clone is ${machine.clone}.`);
      }
    });
  },
});

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) => act(printer));
