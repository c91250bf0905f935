/**
 * A cancellation of the run, which Temporal UI offers, would end a workflow in the middle, and its work would never be
 * done. An uncancelable workflow continues to its end, and the request changes nothing.
 */
import { CancellationScope } from '@temporalio/workflow';

export const uncancelable =
  <Input, Result>(run: (input: Input) => Promise<Result>) =>
  (input: Input): Promise<Result> =>
    CancellationScope.nonCancellable(() => run(input));
