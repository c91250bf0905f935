/**
 * `resolve`: an operator decides a payout with an unknown outcome (contract §6). If it was decided before, the command
 * reports that decision.
 */
import { loadTemporalConfig } from '../../config.ts';
import { RESOLUTION_OUTCOMES, type Resolution, resolutionFault } from '../../domain/review.ts';
import { withCommandErrors } from '../../ops/failure.ts';
import { runResolve } from '../../ops/resolve.ts';
import { CommandError, command, EXIT, type ExitCode } from '../../process/command-line.ts';
import { oneOf, required, text } from '../../process/command-parameter.ts';
import { nameRunningStack } from '../../process/running-stack.ts';
import { connectTemporal } from '../../process/temporal.ts';
import { NO_STACK, type SandboxCommand, type SandboxDeps, SETTLEMENT_ID } from './command.ts';

export const resolve: SandboxCommand = command({
  name: 'resolve',
  description: 'Decides a payout with an unknown outcome, as an operator does.',
  takes: {
    settlementId: SETTLEMENT_ID,
    outcome: required('<outcome>', 'what happened to the payout', oneOf(RESOLUTION_OUTCOMES)),
    operator: required('--operator <name>', 'who decides', text),
    note: required('--note <why>', 'how the outcome is known', text),
  },
  check: ({ outcome, operator, note }) => {
    if (outcome === undefined || operator === undefined || note === undefined) return [];
    const fault = resolutionFault({ outcome, operator, note });
    return fault === undefined ? [] : [`${fault}.`];
  },
  run: (deps: SandboxDeps, { settlementId, ...resolution }) => resolvePayout(deps, settlementId, resolution),
});

/** @returns `refused` when the payout is not in review, or was decided otherwise before */
export async function resolvePayout(
  { env, ...printer }: SandboxDeps,
  settlementId: string,
  resolution: Resolution,
): Promise<ExitCode> {
  const TEMPORAL_ADDRESS = env['TEMPORAL_ADDRESS'] || nameRunningStack()?.temporalAddress;
  if (!TEMPORAL_ADDRESS) throw new CommandError(EXIT.unavailable, `${NO_STACK}, or set TEMPORAL_ADDRESS.`);
  return await withCommandErrors(async () => {
    const temporal = connectTemporal(loadTemporalConfig({ ...env, TEMPORAL_ADDRESS }));
    try {
      return await runResolve({ ...printer, client: temporal.client }, settlementId, resolution);
    } finally {
      await temporal.close();
    }
  });
}
