/**
 * Keeps the processes of one stack: records each the moment it runs, notices when one dies, and stops them all in an
 * order in which nobody loses what it still needs.
 */
import { findProcess, isRunning, type ProcessRecord } from '../../process/process-record.ts';
import { readStack, type StackAddresses } from '../../process/running-stack.ts';
import { stopProcess } from './process.ts';
import { removeStack, writeStack } from './state.ts';

/** Later stages use earlier ones, so they are stopped first. */
const STAGES = ['database', 'orchestrator', 'service'] as const;
export type Stage = (typeof STAGES)[number];

export type Member = {
  readonly name: string;
  readonly stage: Stage;
  readonly record: ProcessRecord;
  readonly logFile: string;
  readonly stop: () => Promise<void>;
};

export type Supervisor = {
  /** Takes a process in, in place of an earlier one of that name. While the stack is stopping, stops it again and throws. */
  readonly keep: (member: Member) => Promise<void>;
  readonly announce: (addresses: StackAddresses) => void;
  readonly findDead: () => Member | undefined;
  /** Stops the processes of one stage and forgets them. */
  readonly stopStage: (stage: Stage) => Promise<void>;
  readonly stopAll: () => Promise<void>;
};

const LEFTOVER_TIMEOUT_MS = 20_000;
const DATABASE = 'PostgreSQL';

/**
 * @param options `embedsDatabase`: whether this stack will take over a PostgreSQL that was left; `directory`: where the
 * record of the stack is kept, `.local` unless told otherwise
 * @throws Error in one sentence when a stack of this clone is running already
 */
export async function createSupervisor({
  embedsDatabase,
  directory,
}: {
  embedsDatabase: boolean;
  directory?: string;
}): Promise<Supervisor> {
  const own = findProcess(process.pid);
  if (!own) throw new Error('This system does not tell which processes run.');
  await endLeftovers(embedsDatabase, directory);
  const members = new Map<string, Member>();
  let addresses: StackAddresses | undefined;
  let stopping = false;
  const save = () => {
    const processes = Object.fromEntries([...members.values()].map(({ name, record }) => [name, record]));
    writeStack({ supervisor: own, processes, ...(addresses && { addresses }) }, directory);
  };
  const stopStage = async (stage: Stage) => {
    const departing = [...members.values()].filter((member) => member.stage === stage);
    await Promise.all(departing.map((member) => member.stop()));
    for (const { name } of departing) members.delete(name);
    save();
  };
  save();
  return {
    stopStage,
    keep: async (member) => {
      if (stopping) {
        await member.stop();
        throw new Error(`${member.name} started while the stack was stopping, and was stopped.`);
      }
      members.set(member.name, member);
      save();
    },
    announce: (known) => {
      addresses = known;
      save();
    },
    findDead: () => [...members.values()].find(({ record }) => !isRunning(record)),
    stopAll: async () => {
      stopping = true;
      for (const stage of STAGES.toReversed()) await stopStage(stage);
      removeStack(directory);
    },
  };
}

/** What a killed supervisor left. Its PostgreSQL goes on when this stack will take it over. */
async function endLeftovers(embedsDatabase: boolean, directory: string | undefined): Promise<void> {
  const state = readStack(directory);
  if (!state) return;
  if (isRunning(state.supervisor)) {
    const where = state.addresses ? `at ${state.addresses.apiUrl}` : 'and is still starting';
    throw new Error(`The stack of this clone is running already ${where} (process ${state.supervisor.pid}).`);
  }
  const { [DATABASE]: database, ...others } = state.processes;
  await Promise.all(Object.values(others).map((record) => stopProcess(record, LEFTOVER_TIMEOUT_MS)));
  if (database && !embedsDatabase) await stopProcess(database, LEFTOVER_TIMEOUT_MS, 'SIGINT');
}
