/** The run of an object's workflow, as `show` prints it. */
import { failingStep, type NextStep } from '../domain/operator-advice.ts';
import type { RunDescription } from '../process/runs.ts';
import type { OpsDeps } from './command.ts';
import { temporalSilence } from './failure.ts';
import type { Row } from './report.ts';

/** `known` is false when Temporal does not answer: then nothing follows from a missing run. */
type RunReport = {
  readonly facts: Row;
  readonly isRunning: boolean;
  readonly known: boolean;
  readonly steps: readonly Row[];
  /** About the first step that fails. */
  readonly failing?: NextStep;
};

export async function reportRun(
  deps: Pick<OpsDeps, 'describeRun' | 'temporalUi'>,
  workflowId: string,
): Promise<RunReport> {
  const facts = (status: string): Row => ({ run: status, workflow_id: workflowId, ...linkOf(deps, workflowId) });
  try {
    const run = await deps.describeRun(workflowId);
    if (run === undefined) return { facts: facts('none'), isRunning: false, known: true, steps: [] };
    return {
      facts: facts(sentenceOf(run)),
      isRunning: run.status === 'running',
      known: true,
      steps: run.steps.map(stepRow),
      ...failingOf(run),
    };
  } catch (error) {
    const silence = temporalSilence(error);
    if (silence === undefined) throw error;
    return { facts: facts('unknown: Temporal does not answer'), isRunning: false, known: false, steps: [] };
  }
}

function failingOf({ steps }: RunDescription): Pick<RunReport, 'failing'> {
  const failing = steps.find(({ lastFailure }) => lastFailure !== null);
  return failing?.lastFailure ? { failing: failingStep(failing.name, failing.lastFailure) } : {};
}

const sentenceOf = ({ status, startedAt }: RunDescription): string => `${status}, started ${startedAt.toISOString()}`;

const stepRow = ({ name, attempt, lastFailure }: RunDescription['steps'][number]): Row => ({
  step: name,
  attempt,
  last_failure: lastFailure,
});

const linkOf = ({ temporalUi }: Pick<OpsDeps, 'temporalUi'>, workflowId: string): Row =>
  temporalUi === undefined ? {} : { link: `${temporalUi}/workflows/${encodeURIComponent(workflowId)}` };
