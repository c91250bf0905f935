/**
 * A cancellation of the run, which Temporal UI offers, would end a workflow in the middle: what it is there for would
 * then never happen. An uncancelable workflow goes on to its end, and the request changes nothing.
 */
import { CancellationScope } from '@temporalio/workflow';

export const uncancelable =
  <Input, Result>(run: (input: Input) => Promise<Result>) =>
  (input: Input): Promise<Result> =>
    CancellationScope.nonCancellable(() => run(input));
