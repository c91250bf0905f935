/**
 * `npm run record-history -- <workflow id> <path name>`: stores the history of a finished run of the local stack. Every
 * later version of the code must replay it. Never replace a stored history: when its replay fails, use `patched()`.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { findRunningStack } from '../process/running-stack.ts';

const HISTORIES = path.resolve(import.meta.dirname, '../test/workflows/histories');

async function record(workflowId: string, pathName: string, address: string): Promise<string> {
  const connection = await Connection.connect({ address });
  try {
    const handle = new Client({ connection }).workflow.getHandle(workflowId);
    const { type, status } = await handle.describe();
    if (status.name === 'RUNNING') throw new Error(`${workflowId} is still running. Record it when it has ended.`);
    const file = path.join(HISTORIES, `${type}.${pathName}.json`);
    if (existsSync(file)) throw new Error(`${file} exists already. A recorded history is never replaced.`);
    mkdirSync(HISTORIES, { recursive: true });
    writeFileSync(file, `${historyToJSON(await handle.fetchHistory())}\n`);
    return file;
  } finally {
    await connection.close();
  }
}

const [workflowId, pathName, ...rest] = process.argv.slice(2);
const address = findRunningStack()?.temporalAddress;
if (workflowId === undefined || pathName === undefined || rest.length > 0 || !/^[a-z0-9-]+$/.test(pathName)) {
  console.error('Usage: npm run record-history -- <workflow id> <path-name-in-kebab-case>');
  process.exitCode = 2;
} else if (address === undefined) {
  console.error('No stack is running in this clone: run `npm start` in another terminal.');
  process.exitCode = 1;
} else {
  console.log(`Recorded ${await record(workflowId, pathName, address)}`);
}
