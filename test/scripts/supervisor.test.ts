import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findProcess, isRunning, type ProcessRecord } from '../../process/local/process-record.ts';
import { readStack } from '../../process/local/running-stack.ts';
import { stopProcess } from '../../scripts/stack/process.ts';
import { apiService, workerService } from '../../scripts/stack/product.ts';
import { startService } from '../../scripts/stack/service.ts';
import { writeStack } from '../../scripts/stack/state.ts';
import { createSupervisor, type Member, type Stage } from '../../scripts/stack/supervisor.ts';

let directory: string;
let started: ProcessRecord[];

beforeEach(() => {
  directory = mkdtempSync(path.join(os.tmpdir(), 'supervisor-'));
  started = [];
});

afterEach(async () => {
  await Promise.all(started.map((record) => stopProcess(record, 2_000, 'SIGKILL')));
  rmSync(directory, { recursive: true, force: true });
});

function sleeper(): ProcessRecord {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  const record = child.pid === undefined ? undefined : findProcess(child.pid);
  if (!record) throw new Error('The sleeper did not start.');
  started.push(record);
  return record;
}

const ended = (record: ProcessRecord): ProcessRecord => ({ ...record, startedAt: 'long ago' });

const member = (name: string, stage: Stage, stop: () => Promise<void> = async () => undefined): Member => ({
  name,
  stage,
  record: sleeper(),
  logFile: path.join(directory, `${name}.log`),
  stop,
});

test('a second stack of the same clone is refused, and no process of the first is stopped', async () => {
  const supervisor = sleeper();
  const api = sleeper();
  writeStack({ supervisor, processes: { api } }, directory);
  await expect(createSupervisor({ embedsDatabase: true, directory })).rejects.toThrow(
    `The stack of this clone is already running and is still starting (process ${supervisor.pid}).`,
  );
  expect(isRunning(api)).toBe(true);
});

test('a record that cannot be read is an error, and not taken for no stack', async () => {
  mkdirSync(path.join(directory, 'stack.json'));
  expect(() => readStack(directory)).toThrow('EISDIR');
  await expect(createSupervisor({ embedsDatabase: true, directory })).rejects.toThrow('EISDIR');
});

test.each([
  ['warn', 'info'],
  ['silent', 'info'],
  [undefined, 'info'],
  ['debug', 'debug'],
])('with LOG_LEVEL %s, API and worker count as ready only once their logs say so', async (given, used) => {
  const options = { env: { LOG_LEVEL: given }, logFile: path.join(directory, 'a.log') };
  for (const service of [workerService(options), apiService({ ...options, url: 'http://127.0.0.1:1' })]) {
    expect(await service.isReady('')).toBe(false);
    expect(service.env['LOG_LEVEL']).toBe(used);
  }
  expect(await workerService(options).isReady('{"msg":"worker ready"}')).toBe(true);
});

test('one of two stacks that start at the same moment is refused, also while what a killed one left is stopped', async () => {
  writeStack({ supervisor: ended(sleeper()), processes: { api: sleeper() } }, directory);
  const start = () => createSupervisor({ embedsDatabase: true, directory });
  const starts = await Promise.allSettled([start(), start()]);
  expect(starts.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  expect(starts.find(({ status }) => status === 'rejected')).toMatchObject({
    reason: { message: expect.stringMatching(/^The stack of this clone is already running/) },
  });
});

test('stops what a killed supervisor left, but not the database that it will take over, nor a process that only has the same pid', async () => {
  const [supervisor, api, stranger, database] = [sleeper(), sleeper(), sleeper(), sleeper()];
  writeStack(
    { supervisor: ended(supervisor), processes: { api, worker: ended(stranger), PostgreSQL: database } },
    directory,
  );
  await createSupervisor({ embedsDatabase: true, directory });
  expect([supervisor, api, stranger, database].map(isRunning)).toEqual([true, false, true, true]);
});

test('stops the database that a killed supervisor left when this stack uses another one', async () => {
  const database = sleeper();
  writeStack({ supervisor: ended(sleeper()), processes: { PostgreSQL: database } }, directory);
  await createSupervisor({ embedsDatabase: false, directory });
  expect(isRunning(database)).toBe(false);
});

test('stops the services first, then Temporal, then the database, and removes the record', async () => {
  const supervisor = await createSupervisor({ embedsDatabase: true, directory });
  const stopped: string[] = [];
  const keep = (name: string, stage: Stage) =>
    supervisor.keep(member(name, stage, async () => void stopped.push(name)));
  await keep('PostgreSQL', 'database');
  await keep('Temporal', 'orchestrator');
  await keep('The API', 'service');
  await keep('The worker', 'service');
  await supervisor.stopAll();
  expect(stopped).toEqual(['The API', 'The worker', 'Temporal', 'PostgreSQL']);
  expect(readStack(directory)).toBeUndefined();
});

test('stops every process although the record cannot be written, as on a full disk', async () => {
  const supervisor = await createSupervisor({ embedsDatabase: true, directory });
  const stopped: string[] = [];
  for (const [name, stage] of [
    ['PostgreSQL', 'database'],
    ['The API', 'service'],
  ] as const)
    await supervisor.keep(member(name, stage, async () => void stopped.push(name)));
  mkdirSync(path.join(directory, `stack.json.${process.pid}`));
  await supervisor.stopAll();
  expect(stopped).toEqual(['The API', 'PostgreSQL']);
});

test('waits for a process that is starting, and stops it', async () => {
  const supervisor = await createSupervisor({ embedsDatabase: true, directory });
  let stops = 0;
  const starting = member('PostgreSQL', 'database', async () => {
    stops += 1;
  });
  const kept = supervisor.keep(delay(100).then(() => starting));
  const stopping = supervisor.stopAll();
  await expect(kept).rejects.toThrow('PostgreSQL started while the stack was stopping, and was stopped.');
  await stopping;
  expect(stops).toBe(1);
});

test('stops a process that starts while the stack is stopping', async () => {
  const supervisor = await createSupervisor({ embedsDatabase: true, directory });
  await supervisor.stopAll();
  let stops = 0;
  const late = member('The API', 'service', async () => {
    stops += 1;
  });
  await expect(supervisor.keep(late)).rejects.toThrow('The API started while the stack was stopping, and was stopped.');
  expect(stops).toBe(1);
});

test('a process that ends because its stage is stopped is not reported as one that ended by itself', async () => {
  const supervisor = await createSupervisor({ embedsDatabase: true, directory });
  const found: (Member | undefined)[] = [];
  const api = member('The API', 'service', async () => {
    await stopProcess(api.record, 2_000, 'SIGKILL');
    found.push(supervisor.findDead());
  });
  await supervisor.keep(api);
  await supervisor.stopStage('service');
  expect(found).toEqual([undefined]);
});

test('names the process that has ended', async () => {
  const supervisor = await createSupervisor({ embedsDatabase: true, directory });
  const api = member('The API', 'service');
  await supervisor.keep(member('The worker', 'service'));
  await supervisor.keep(api);
  expect(supervisor.findDead()).toBeUndefined();
  await stopProcess(api.record, 2_000, 'SIGKILL');
  expect(supervisor.findDead()?.name).toBe('The API');
});

test('only its owner can read the record of the stack, because it contains the password of the database', async () => {
  await createSupervisor({ embedsDatabase: true, directory });
  expect(statSync(path.join(directory, 'stack.json')).mode & 0o777).toBe(0o600);
});

test('a service that ends before it is ready is an error with its last lines and the path of its log', async () => {
  const script = path.join(directory, 'service.mjs');
  const logFile = path.join(directory, 'service.log');
  writeFileSync(script, 'console.error("PORT must be a port number"); process.exit(1);');
  const kept: Member[] = [];
  const keep = async (member: Member) => void kept.push(member);
  const service = { name: 'The API', run: script, env: process.env, logFile, isReady: () => false };
  await expect(startService(service, keep)).rejects.toMatchObject({
    message: `The API ended before it was ready; its log is ${logFile}.`,
    cause: '    PORT must be a port number',
  });
  expect(kept.map(({ name, stage }) => ({ name, stage }))).toEqual([{ name: 'The API', stage: 'service' }]);
});
