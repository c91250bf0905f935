/** What all commands of `npm run ops` have in common. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { connect } from '../../db/client.ts';
import { runConfigured } from '../../ops/main.ts';
import { createOps } from '../support/ops.ts';

/** As if no stack ran in this clone. */
vi.mock('../../process/local/running-stack.ts', () => ({ completeEnvironment: (given: NodeJS.ProcessEnv) => given }));

const { db } = connect('postgresql://127.0.0.1:1/none', { poolSizeMax: 1, name: 'test', onIdleError: () => undefined });
const ops = createOps(db);

/** The names of the commands in the help of a group. */
function listCommands(help: readonly string[]): string[] {
  const lines = help.join('\n').split('\n');
  const commands = lines.slice(lines.indexOf('Commands:') + 1);
  return commands.flatMap((line) => /^ {2}(\S+)/.exec(line)?.[1] ?? []);
}

const named = (list: string): string[] => list.trim().split(/,\s+/);
const READS = named(`
  show, waiting, stuck, reconcile, partitions, config check, audit verify, gate list, gate explain, keys list,
  operator list, list settlements, list deliveries, list subscriptions, list evidence, list audit, list orgs, list keys
`);
const CHANGES = named(`
  redispatch, cancel, resolve, refund record, retry-delivery, retry-deliveries, webhook disable, webhook enable,
  org reissue-key, org suspend, org resume, org tier, limit set, key revoke, erase recipient, export recipient,
  operator add, operator revoke, keys record, keys reseal, gate record, gate approve, gate revoke
`);
const isRead = (path: readonly string[]): boolean => READS.includes(path.join(' '));

async function listPaths(path: readonly string[] = []): Promise<string[][]> {
  const { printed } = await ops(...path, '--help');
  if (!printed.join('\n').includes('\nCommands:\n')) return [[...path]];
  return (await Promise.all(listCommands(printed).map((name) => listPaths([...path, name])))).flat();
}

const paths = await listPaths();

test('every command explains itself, and prints JSON on request', async () => {
  expect(new Set(paths.map((path) => path.join(' ')))).toEqual(new Set([...READS, ...CHANGES]));
  for (const path of paths) {
    const { exitCode, printed } = await ops(...path, '--help');
    expect(exitCode).toBe(0);
    expect(printed.join('\n')).toContain(`Usage: npm run ops -- ${path.join(' ')} `);
    expect(printed.join('\n')).toContain('--json');
  }
});

test('every change shows what it would do unless --yes confirms it, and no other command takes --yes', async () => {
  for (const path of paths) {
    const help = (await ops(...path, '--help')).printed.join('\n');
    expect([path, help.includes('--yes')]).toEqual([path, help.includes('--operator <name>') && !isRead(path)]);
  }
});

test('every change needs an operator, and a note or an evidence file', async () => {
  for (const path of paths) {
    if (isRead(path)) continue;
    const { exitCode, warned } = await ops(...path);
    expect(exitCode).toBe(2);
    expect(warned).toContain('--operator is required.');
    expect(warned).toContain(path.join(' ') === 'gate record' ? '--evidence is required.' : '--note is required.');
  }
});

test('a command says that no stack runs in the clone before it lists what its environment lacks', async () => {
  onTestFinished(() => void vi.unstubAllEnvs());
  const warnedWith = async (given: Readonly<Record<string, string>>): Promise<string[]> => {
    for (const name of ['RUNTIME_ENVIRONMENT', 'DATABASE_URL', 'DATABASE_URL_FILE']) vi.stubEnv(name, given[name]);
    const warned: string[] = [];
    const output = { print: () => undefined, warn: (line: string) => void warned.push(line) };
    expect(await runConfigured(['waiting'], output)).toBe(78);
    return warned;
  };
  const faults = expect.stringMatching(/^The configuration has \d+ faults?:/);
  expect(await warnedWith({})).toEqual([expect.stringContaining('No stack is running in this clone'), faults]);
  expect(await warnedWith({ RUNTIME_ENVIRONMENT: 'production' })).toEqual([faults]);
});
