/**
 * `resolve`: an operator says what became of a payout that nobody answered for (contract §6), by the same Temporal
 * Update that Temporal UI offers. Said twice, or after somebody else, it tells what was decided.
 */
import { parseArgs } from 'node:util';
import { loadTemporalConfig } from '../../config.ts';
import { RESOLUTION_OUTCOMES, resolutionFault } from '../../domain/review.ts';
import { runResolve } from '../../ops/resolve.ts';
import { nameRunningStack } from '../../process/running-stack.ts';
import { connectTemporal } from '../../process/temporal.ts';
import type { SandboxCommand } from './command.ts';

export const resolve: SandboxCommand = {
  usage: 'resolve <settlement_id> paid|refused --operator NAME --note TEXT',
  run: async (args) => {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { operator: { type: 'string' }, note: { type: 'string' } },
    });
    const [settlementId = '', word] = positionals;
    const { operator = '', note = '' } = values;
    const outcome = RESOLUTION_OUTCOMES.find((candidate) => candidate === word);
    const fault = resolutionFault({ outcome, operator, note });
    if (outcome === undefined || fault !== undefined) {
      console.error(`Not resolved: ${fault}.`);
      return 1;
    }
    const TEMPORAL_ADDRESS = process.env['TEMPORAL_ADDRESS'] || nameRunningStack()?.temporalAddress;
    if (!TEMPORAL_ADDRESS) {
      console.error('No stack is running in this clone: run `npm start` in another terminal, or set TEMPORAL_ADDRESS.');
      return 1;
    }
    const temporal = connectTemporal(loadTemporalConfig({ ...process.env, TEMPORAL_ADDRESS }));
    try {
      return await runResolve({ client: temporal.client, print: console.log }, settlementId, {
        outcome,
        operator,
        note,
      });
    } finally {
      await temporal.close();
    }
  },
};
