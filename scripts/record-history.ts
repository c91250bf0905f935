/**
 * `npm run record-history -- <workflow id> <path name>`: stores the history of a finished run of the local stack. Every
 * later version of the code must replay it. From the first release on, a history is never replaced: when its replay
 * fails, use `patched()`.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { type Reader, required, text, type ValuesOf } from '../ops/command-line/parameter.ts';
import { CommandError, command, EXIT, type Printer, runProgram, standardOutput } from '../ops/command-line/program.ts';
import { findRunningStack } from '../process/local/running-stack.ts';
import { NO_STACK } from './sandbox/command.ts';

const HISTORIES = path.resolve(import.meta.dirname, '../test/workflows/histories');

async function record(workflowId: string, pathName: string, address: string): Promise<string> {
  const connection = await Connection.connect({ address });
  try {
    const handle = new Client({ connection }).workflow.getHandle(workflowId);
    const { type, status } = await handle.describe();
    if (status.name === 'RUNNING')
      throw new CommandError(EXIT.refused, `${workflowId} is still running. Record it when it has ended.`);
    const file = path.join(HISTORIES, `${type}.${pathName}.json`);
    if (existsSync(file))
      throw new CommandError(EXIT.refused, `${file} exists already. A recorded history is never replaced.`);
    mkdirSync(HISTORIES, { recursive: true });
    // In one line: nobody reads it.
    writeFileSync(file, `${JSON.stringify(JSON.parse(historyToJSON(await handle.fetchHistory())))}\n`);
    return file;
  } finally {
    await connection.close();
  }
}

const kebabCase: Reader<string> = {
  read: (given) =>
    /^[a-z0-9-]+$/.test(given) ? { value: given } : { fault: 'must be lower-case words with hyphens between them.' },
};

const TAKES = {
  workflowId: required('<workflow-id>', 'the workflow, settlement:<id> for example', text),
  pathName: required('<path-name>', 'the path that the run took, as lower-case words with hyphens', kebabCase),
};

const program = command({
  name: 'record-history',
  description:
    'Stores the history of a finished run of the local stack, which every later version of the code must replay.',
  takes: TAKES,
  json: false,
  run: async ({ print }: Printer, { workflowId, pathName }: ValuesOf<typeof TAKES>) => {
    const address = findRunningStack()?.temporalAddress;
    if (address === undefined) throw new CommandError(EXIT.unavailable, `${NO_STACK}.`);
    print(`Recorded ${await record(workflowId, pathName, address)}`);
    return EXIT.done;
  },
});

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) => act(printer));
