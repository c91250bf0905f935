/**
 * Refuses the operations that a remote runtime does not offer (`operations.csv`, column `remote`): after validation,
 * and before anything is stored.
 */
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { CORRIDOR_IDS, type CorridorId } from '../../domain/corridor.ts';
import { DomainError } from '../../domain/error.ts';
import { isRemote } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import { closedGates } from '../http/gate.ts';
import { throwPriceFaults } from '../http/priced-body.ts';

export const remoteGate = fp(async (app: FastifyInstance, { deps }: { deps: ApiDeps }) => {
  if (!isRemote(deps.runtime)) return;
  app.addHook('preHandler', async (request) => {
    const answer = request.routeOptions.config.access?.remote ?? 'same';
    if (answer !== 'same') throwPriceFaults(request.body);
    // Thrown even if every gate is open: the refusal must not depend on the gates.
    if (answer === 'launch_gates_closed')
      throw new DomainError(answer, { gates: await closedGates(deps, request.log, corridorOf(request.body)) });
    if (answer === 'local_sandbox_only' || answer === 'remote_environment') throw new DomainError(answer);
  });
});

/** The corridor that a body names, if it names one. */
function corridorOf(body: unknown): CorridorId | undefined {
  const named = typeof body === 'object' && body !== null && 'corridor' in body ? body.corridor : undefined;
  return CORRIDOR_IDS.find((id) => id === named);
}
