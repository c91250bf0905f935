import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { gatesResource } from '../../domain/resource/gate.ts';
import { environmentName } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import { readGates } from '../http/gate.ts';
import { LaunchGatesResponse } from '../schemas/launch-gate.ts';

/** The state of the launch gates (contract §14). A gate is shown as open if it is open in every corridor. */
export const launchGateRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.get(
      '/v2/launch-gates',
      {
        config: { access: { auth: 'api_key', scope: 'read' } },
        schema: {
          tags: ['Posture'],
          operationId: 'getLaunchGates',
          summary: 'Read the launch gates',
          description:
            'Real value can move only when all gates are open. In the local sandbox a gate without evidence does not ' +
            'stop a simulation. Elsewhere one closed gate forbids every value operation.',
          response: { 200: LaunchGatesResponse },
        },
      },
      async (request) => gatesResource(environmentName(deps.runtime), await readGates(deps, request.log)),
    );
  };
