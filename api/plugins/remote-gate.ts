/**
 * Closes what a remote runtime does not offer, after validation and before anything is stored
 * (`operations.csv`, column `remote`).
 */
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { DomainError } from '../../domain/error.ts';
import { isRemote } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import { closedGates, corridorOf } from '../gate.ts';

export const remoteGate = fp(async (app: FastifyInstance, { deps }: { deps: ApiDeps }) => {
  if (!isRemote(deps.runtime)) return;
  app.addHook('preHandler', async (request) => {
    const answer = request.routeOptions.config.access?.remote ?? 'same';
    // Thrown whatever the gates say: that one is always closed is their statement, not what this relies on.
    if (answer === 'launch_gates_closed')
      throw new DomainError(answer, { gates: await closedGates(deps, request.log, corridorOf(request.body)) });
    if (answer === 'local_sandbox_only' || answer === 'remote_environment') throw new DomainError(answer);
  });
});
