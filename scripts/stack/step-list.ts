/** Steps that are run and printed as a list, each with its time. */
import { Listr, ListrLogger, ListrLogLevels, type ListrTask, PRESET_TIMER } from 'listr2';

const TIMED = { timer: PRESET_TIMER };

/** Runs the steps one after the other, and prints each with its time. */
export async function runSteps<Found>(steps: ListrTask<Found>[], findings: Found): Promise<Found> {
  const rendererOptions = { ...TIMED, collapseSubtasks: false, showErrorMessage: false };
  return await new Listr(steps, {
    ctx: findings,
    registerSignalListeners: false,
    rendererOptions,
    fallbackRendererOptions: { ...TIMED, logger: plainLogger() },
  }).run();
}

/** What prints the steps where there is no terminal. The caller prints the error, so a failed step is only named. */
function plainLogger(): ListrLogger {
  const logger = new ListrLogger({ useIcons: true });
  const log = logger.log.bind(logger);
  logger.log = (level, message, options) => log(level, message, level === ListrLogLevels.FAILED ? undefined : options);
  return logger;
}
