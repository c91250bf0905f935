/** How a workflow with a long history goes on. */
import { makeContinueAsNewFunc, workflowInfo } from '@temporalio/workflow';

/**
 * Continues as a new run. Its memo is given again: Temporal would copy the payloads of this one, as the key sealed them
 * that was active when the first run began, and no later run could do without that key.
 */
export const continueAsNewRun = <Input>(input: Input): Promise<never> =>
  makeContinueAsNewFunc<(input: Input) => Promise<unknown>>({ memo: workflowInfo().memo ?? {} })(input);
