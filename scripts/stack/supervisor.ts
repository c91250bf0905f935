/**
 * Supervises the processes of one stack: records each as soon as it runs, notices when one ends, and stops them all,
 * each before the processes that it needs.
 */
import { localDirectory } from '../../process/local/place.ts';
import { findProcess, isRunning, type ProcessRecord } from '../../process/local/process-record.ts';
import { readStack, type StackAddresses } from '../../process/local/running-stack.ts';
import { withLock } from './installation.ts';
import { stopProcess } from './process.ts';
import { removeStack, writeStack } from './state.ts';

/** Later stages need earlier ones, so they are stopped first. */
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
  /**
   * Adds a process, or replaces the one of that name, also one that is still starting. While the stack is stopping,
   * stops the process and throws.
   */
  readonly keep: (member: Member | Promise<Member>) => Promise<void>;
  readonly announce: (addresses: StackAddresses) => void;
  readonly findDead: () => Member | undefined;
  /** Stops and removes the processes of one stage. */
  readonly stopStage: (stage: Stage) => Promise<void>;
  readonly stopAll: () => Promise<void>;
};

const LEFTOVER_TIMEOUT_MS = 20_000;
const DATABASE = 'PostgreSQL';

/**
 * @param options `embedsDatabase`: whether this stack will take over a running PostgreSQL of a killed stack;
 *   `directory`: where the record of the stack is kept, by default `.local`
 * @throws Error in one sentence when a stack of this clone is already running
 */
export async function createSupervisor({
  embedsDatabase,
  directory = localDirectory,
}: {
  embedsDatabase: boolean;
  directory?: string;
}): Promise<Supervisor> {
  const own = findProcess(process.pid);
  if (!own) throw new Error('The running processes of this system cannot be listed.');
  const members = new Map<string, Member>();
  let addresses: StackAddresses | undefined;
  /** Their end is expected. */
  const ending = new Set<string>();
  let stopping = false;
  const save = () => {
    const processes = Object.fromEntries([...members.values()].map(({ name, record }) => [name, record]));
    writeStack({ supervisor: own, processes, ...(addresses && { addresses }) }, directory);
  };
  const stopMembers = async (stage: Stage) => {
    const stopped = [...members.values()].filter((member) => member.stage === stage);
    for (const { name } of stopped) ending.add(name);
    await Promise.all(stopped.map((member) => member.stop()));
    for (const { name } of stopped) {
      members.delete(name);
      ending.delete(name);
    }
  };
  const add = async (starting: Member | Promise<Member>) => {
    const member = await starting;
    if (stopping) {
      await member.stop();
      throw new Error(`${member.name} started while the stack was stopping, and was stopped.`);
    }
    members.set(member.name, member);
    save();
  };
  const additions = new Set<Promise<void>>();
  // Another start of this clone sees the record of this one, or that of the killed one, and nothing between.
  await withLock('stack', { binDirectory: directory }, async () => {
    await stopLeftovers(embedsDatabase, directory);
    save();
  });
  return {
    stopStage: async (stage) => {
      await stopMembers(stage);
      save();
    },
    keep: async (member) => {
      const addition = add(member);
      additions.add(addition);
      await addition.finally(() => additions.delete(addition));
    },
    announce: (known) => {
      addresses = known;
      save();
    },
    findDead: () => [...members.values()].find(({ name, record }) => !ending.has(name) && !isRunning(record)),
    stopAll: async () => {
      stopping = true;
      // The record is not renewed meanwhile: a full disk must not keep a process from being stopped.
      for (const stage of STAGES.toReversed()) await stopMembers(stage);
      await Promise.allSettled(additions);
      removeStack(directory);
    },
  };
}

/** Stops the processes that a killed supervisor left. Its PostgreSQL stays if this stack will take it over. */
async function stopLeftovers(embedsDatabase: boolean, directory: string): Promise<void> {
  const state = readStack(directory);
  if (!state) return;
  if (isRunning(state.supervisor)) {
    const where = state.addresses ? `at ${state.addresses.apiUrl}` : 'and is still starting';
    throw new Error(`The stack of this clone is already running ${where} (process ${state.supervisor.pid}).`);
  }
  const { [DATABASE]: database, ...others } = state.processes;
  await Promise.all(Object.values(others).map((record) => stopProcess(record, LEFTOVER_TIMEOUT_MS)));
  if (database && !embedsDatabase) await stopProcess(database, LEFTOVER_TIMEOUT_MS, 'SIGINT');
}
