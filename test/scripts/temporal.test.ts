import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { localDirectory } from '../../process/local/place.ts';
import { acquireDevServer } from '../../scripts/stack/binary.ts';
import { hasEnded } from '../../scripts/stack/process.ts';
import {
  databaseFileOf,
  startTemporal,
  type TemporalOptions,
  type TemporalServer,
} from '../../scripts/stack/temporal.ts';

let directory: string;
let options: TemporalOptions;

beforeAll(async () => {
  directory = mkdtempSync(path.join(os.tmpdir(), 'temporal-'));
  options = {
    program: await acquireDevServer({ env: process.env, binDirectory: path.join(localDirectory, 'bin') }),
    searchAttributes: ['OrgId', 'WaitingFor'],
    logFile: path.join(directory, 'temporal.log'),
    databaseFile: path.join(directory, 'temporal.db'),
  };
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

async function withClient<Value>(server: TemporalServer, use: (client: Client) => Promise<Value>): Promise<Value> {
  const connection = await Connection.connect({ address: server.address });
  try {
    return await use(new Client({ connection }));
  } finally {
    await connection.close();
  }
}

test('a program that is no server is an error with the path of its log', async () => {
  await expect(startTemporal({ ...options, program: '/bin/false' })).rejects.toThrow(
    /Temporal did not start: it ended right away \(.+temporal\.log\)\.$|ended right after its start/,
  );
});

test('Temporal takes another port when the requested one is taken', async () => {
  const neighbour = createServer();
  await once(neighbour.listen(0, '127.0.0.1'), 'listening');
  const { port: taken } = neighbour.address() as AddressInfo;
  const { databaseFile: _, ...inMemory } = options;
  const server = await startTemporal({ ...inMemory, wishedPort: taken });
  neighbour.close();
  expect(server.port).not.toBe(taken);
  await server.stop();
});

test('a running workflow and its search attributes survive a kill and a restart of the server', async () => {
  const killed = await startTemporal(options);
  await withClient(killed, (client) =>
    client.workflow.start('anything', {
      workflowId: 'kept',
      taskQueue: 'none',
      searchAttributes: { OrgId: ['org-1'], WaitingFor: ['evidence'] },
    }),
  );
  process.kill(killed.process.pid, 'SIGKILL');
  await hasEnded(killed.process, 10_000);
  const server = await startTemporal(options);
  try {
    const described = await withClient(server, (client) => client.workflow.getHandle('kept').describe());
    expect(described).toMatchObject({
      status: { name: 'RUNNING' },
      searchAttributes: { OrgId: ['org-1'], WaitingFor: ['evidence'] },
    });
  } finally {
    await server.stop();
  }
  expect(await hasEnded(server.process, 0)).toBe(true);
});

test('the servers of two minor versions have data files of their own, because neither can use the other one', async () => {
  const fileOf = async (version: string) => {
    const program = path.join(directory, `temporal-${version}`);
    writeFileSync(program, `#!/bin/sh\necho "temporal version 1 (Server ${version}, UI 2)"\n`);
    chmodSync(program, 0o755);
    return path.basename(await databaseFileOf(program, directory));
  };
  expect([await fileOf('1.29.1'), await fileOf('1.32.0'), await fileOf('1.32.7')]).toEqual([
    'server-1.29.db',
    'server-1.32.db',
    'server-1.32.db',
  ]);
});

test('the program that is installed here names the version of its server', async () => {
  expect(await databaseFileOf(options.program, directory)).toMatch(/server-1\.\d+\.db$/);
});
