/** Starts the API and the worker of a running stack again when their sources have changed. */
import { watch } from 'node:fs';
import path from 'node:path';
import { migrate } from '../../db/migrate.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { workflowBundle } from '../../worker/bundle.ts';
import { compiledPrograms, PROGRAM_FOLDERS } from '../stack/compiled.ts';
import { complain } from '../stack/lifetime.ts';
import { type Findings, type Start, startServices } from '../stack/steps.ts';

/** An editor writes a file in several steps, and a checkout writes many files. */
const QUIET_MS = 150;

/** Watches until the process ends. A source that cannot be built leaves the running programs alone. */
export function restartOnChange(start: Start, findings: Findings): void {
  const queue = oneAtATime(() => restart(start, findings));
  const folders = PROGRAM_FOLDERS.map((folder) =>
    watch(path.join(repositoryRoot, folder), { recursive: true }, queue.soon),
  );
  const root = watch(repositoryRoot, (_event, file) => {
    if (file === 'package-lock.json') queue.soon();
  });
  start.signal.addEventListener('abort', () => {
    for (const watcher of [...folders, root]) watcher.close();
    queue.end();
  });
  console.log('Watching the sources: the API and the worker start again when one changes.');
}

/** Runs the work some time after the last call, and again if it was called meanwhile. */
export function oneAtATime(work: () => Promise<void>, quietMs = QUIET_MS) {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let isOver = false;
  const soon = (): void => {
    clearTimeout(timer);
    if (!isOver) timer = setTimeout(begin, quietMs);
  };
  const begin = (): void => {
    if (running !== undefined) {
      soon();
      return;
    }
    running = work().finally(() => {
      running = undefined;
    });
  };
  return {
    soon,
    end: () => {
      isOver = true;
      clearTimeout(timer);
    },
  };
}

async function restart(start: Start, findings: Findings): Promise<void> {
  const startedAt = performance.now();
  try {
    const programs = await compiledPrograms(['api', 'worker'], 'own code');
    // The content is the one that runs, for example after a save without a change.
    if (programs.api === findings.programs.api) return;
    await workflowBundle();
    await migrate(findings);
    findings.programs = programs;
  } catch (error) {
    console.error(`The old programs go on: ${error instanceof Error ? error.message : String(error)}`);
    return;
  }
  console.log('A source has changed: the API and the worker start again.');
  try {
    await start.supervisor.stopStage('service');
    await startServices(start, findings);
    console.log(`Ready again after ${((performance.now() - startedAt) / 1_000).toFixed(1)} s.`);
  } catch (error) {
    if (start.signal.aborted) return;
    complain(error);
    // The rest of the stack stays for the next change.
    await start.supervisor.stopStage('service');
  }
}
