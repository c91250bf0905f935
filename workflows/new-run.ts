/** How a workflow with a long history goes on. */
import { makeContinueAsNewFunc, workflowInfo } from '@temporalio/workflow';

/**
 * Continues as a new run, with the memo of this one. Without it, Temporal copies the memo as it is stored: sealed by the
 * key that was active when the first run began, so no later run could do without that key.
 */
export const continueAsNewRun = <Input>(input: Input): Promise<never> =>
  makeContinueAsNewFunc<(input: Input) => Promise<unknown>>({ memo: workflowInfo().memo ?? {} })(input);
