import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { execa } from 'execa';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { repositoryRoot } from '../../process/local/place.ts';
import { findProcess } from '../../process/local/process-record.ts';
import { readStack } from '../../process/local/running-stack.ts';
import { stopProcess } from '../../scripts/stack/process.ts';
import { stretched } from '../support/patience.ts';
import { readSource } from '../support/source.ts';

const run = promisify(execFile);
const TERMINAL = path.join(repositoryRoot, 'test', 'support', 'terminal.py');
const SUPERVISED = path.join(repositoryRoot, 'test', 'fixtures', 'supervised.ts');
const FAILING = path.join(repositoryRoot, 'test', 'fixtures', 'failing-step.ts');
const CLOSING = path.join(repositoryRoot, 'test', 'fixtures', 'closing.ts');
const WAIT_SECONDS = String(Math.ceil(stretched(15_000) / 1_000));

const Ended = z.object({ printed: z.boolean(), ended: z.number().nullable() });

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(path.join(os.tmpdir(), 'lifetime-'));
});

afterEach(async () => {
  const processes = Object.values(readStack(directory)?.processes ?? {});
  await Promise.all(processes.map((record) => stopProcess(record, 2_000, 'SIGKILL')));
  rmSync(directory, { recursive: true, force: true });
});

const supervised = () => [process.execPath, '--import', 'tsx', SUPERVISED, directory];

/** Runs a program in a terminal, and closes the terminal when the program has printed the text. */
async function closeTerminalAt(text: string, command: readonly string[], env: NodeJS.ProcessEnv = process.env) {
  const { stdout } = await run('python3', [TERMINAL, text, WAIT_SECONDS, ...command], { cwd: repositoryRoot, env });
  const lines = stdout.trim().split('\n');
  return { output: lines.slice(0, -1).join('\n'), ...Ended.parse(JSON.parse(lines.at(-1) ?? '')) };
}

const Package = z.object({ scripts: z.record(z.string(), z.string()) });
const npmScripts = () => Package.parse(JSON.parse(readSource('package.json'))).scripts;

/** Runs this line of a package.json, and waits until it has printed the text. */
async function startByNpm(start: string | undefined, text: string) {
  writeFileSync(path.join(directory, 'package.json'), JSON.stringify({ scripts: { start } }));
  symlinkSync(path.join(repositoryRoot, 'node_modules'), path.join(directory, 'node_modules'));
  const npm = spawn('npm', ['start'], { cwd: directory, stdio: ['ignore', 'pipe', 'ignore'] });
  let output = '';
  npm.stdout.on('data', (chunk) => {
    output += String(chunk);
  });
  await expect.poll(() => output).toContain(text);
  return { npm, output: () => output };
}

const pidIn = (output: string): number => Number(/Ready, (\d+)/.exec(output)?.[1]);

describe('a closed terminal', () => {
  test('stops every process of the stack, removes its record, and the supervisor ends with 0', async () => {
    const { output, printed, ended } = await closeTerminalAt('Ready, ', supervised());
    expect({ printed, ended }).toEqual({ printed: true, ended: 0 });
    expect(findProcess(pidIn(output))).toBeUndefined();
    expect(readStack(directory)).toBeUndefined();
  });
});

describe('a signal to the stack', () => {
  async function startSupervised() {
    const [program = '', ...args] = supervised();
    const child = spawn(program, args, { cwd: repositoryRoot, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += String(chunk);
    });
    await expect.poll(() => output).toContain('Ready, ');
    return { child, output: () => output };
  }

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const)(
    '%s stops every process, and the supervisor ends with 0, also when it comes twice at once',
    async (signal) => {
      const { child, output } = await startSupervised();
      child.kill(signal);
      child.kill(signal);
      expect(await once(child, 'exit')).toEqual([0, null]);
      expect(output()).toContain(`Stopping after ${signal}.`);
      expect(findProcess(pidIn(output()))).toBeUndefined();
      expect(readStack(directory)).toBeUndefined();
    },
  );

  test.each(['SIGINT', 'SIGTERM'] as const)(
    '%s to npm alone stops every process, as a service manager sends it',
    async (signal) => {
      const line = npmScripts()['start']?.replace('scripts/start.ts', `${SUPERVISED} ${directory}`);
      const { npm, output } = await startByNpm(line, 'Ready, ');
      npm.kill(signal);
      expect(await once(npm, 'exit')).toEqual([0, null]);
      expect(findProcess(pidIn(output()))).toBeUndefined();
      expect(readStack(directory)).toBeUndefined();
    },
  );

  test('ends the supervisor at once if it reports a fault: a handler would return into the fault without end', async () => {
    const { child } = await startSupervised();
    child.kill('SIGSEGV');
    expect(await once(child, 'exit')).toEqual([null, 'SIGSEGV']);
  });
});

describe('the API and the worker', () => {
  const start = (...mode: string[]) => {
    const child = spawn(process.execPath, ['--import', 'tsx', CLOSING, ...mode], { cwd: repositoryRoot });
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += String(chunk);
    });
    return { child, output: () => output };
  };
  const endedBy = async (signals: readonly NodeJS.Signals[], ...mode: string[]) => {
    const { child, output } = start(...mode);
    for (const [index, signal] of signals.entries()) {
      await expect.poll(output).toContain(index === 0 ? 'Ready' : 'Closing');
      child.kill(signal);
    }
    const [[code, signal]] = await Promise.all([once(child, 'exit'), once(child.stdout, 'end')]);
    return [
      code ?? signal,
      ...output()
        .split('\n')
        .filter((line) => line.startsWith('{')),
    ];
  };

  test('end at once after a fault, and close in order at SIGTERM', async () => {
    expect(await endedBy(['SIGSEGV'])).toEqual(['SIGSEGV']);
    expect(await endedBy(['SIGBUS'])).toEqual(['SIGBUS']);
    expect(await endedBy(['SIGTERM'])).toEqual([0]);
    // The terminal sends Ctrl-C to the process, and npm sends it again.
    expect(await endedBy(['SIGTERM'], 'twice')).toEqual([0]);
    // With a handler of its own, since the first process of a container has no default.
    expect(await endedBy(['SIGTERM'], 'starting')).toEqual([143]);
  });

  test.for(['api', 'worker'])(
    'close in order at a signal to npm that comes while they are busy, as a service manager sends it: %s',
    async (name) => {
      const line = npmScripts()[`start:${name}`]?.replace(`${name}/main.ts`, `${CLOSING} busy`);
      const { npm, output } = await startByNpm(line, 'Ready');
      npm.kill('SIGTERM');
      expect([await once(npm, 'close'), output()]).toEqual([[0, null], expect.stringContaining('Closing')]);
    },
  );

  test('go on at SIGUSR2, at which Node.js writes a heap snapshot if it is told to', async () => {
    const { child, output } = start();
    await expect.poll(output).toContain('Ready');
    const ended = once(child, 'exit');
    child.kill('SIGUSR2');
    await delay(250);
    child.kill('SIGKILL');
    expect([await ended, output()]).toEqual([[null, 'SIGKILL'], 'Ready\n']);
  });

  test.for([
    ['failing', ['SIGTERM'], 'the process did not close in order'],
    ['hanging', ['SIGTERM'], 'the process did not close in time'],
    ['failing-twice', ['SIGTERM'], 'an error ended the process while it closed'],
    ['never-ending', ['SIGTERM', 'SIGINT'], 'a signal ended the process while it closed'],
  ] as const)('%s, end with 1 after one line that says why and what was closing', async ([mode, signals, message]) => {
    const [code, ...lines] = await endedBy(signals, mode);
    expect([code, ...lines.map((line) => JSON.parse(String(line)))]).toEqual([
      1,
      expect.objectContaining({ message, closing: 'the rest' }),
    ]);
  });
});

test('every npm script that is one program replaces its shell: a shell that waits does not pass on the SIGINT of npm', () => {
  const chained = Object.entries(npmScripts()).filter(([, line]) => !line.includes('&&'));
  expect(chained.filter(([, line]) => !line.startsWith('exec '))).toEqual([]);
});

test('a failed step is said once in a pipe, whatever number of steps it is part of', async () => {
  const { stdout, stderr, exitCode } = await execa(process.execPath, ['--import', 'tsx', FAILING], {
    cwd: repositoryRoot,
    reject: false,
    env: { NO_COLOR: '1' },
  });
  expect(`${stdout}\n${stderr}`.match(/The disk is full\./g)).toHaveLength(1);
  expect(stdout).toContain('Servers');
  expect(exitCode).toBe(1);
});

test('npm start with a refused configuration ends with 78', async () => {
  const { stderr, exitCode } = await execa(process.execPath, ['--import', 'tsx', 'scripts/start.ts'], {
    cwd: repositoryRoot,
    reject: false,
    env: { RUNTIME_ENVIRONMENT: 'production', PORT: 'x', NO_COLOR: '1' },
  });
  expect([exitCode, stderr]).toEqual([78, expect.stringContaining('PORT must be a port number')]);
});
