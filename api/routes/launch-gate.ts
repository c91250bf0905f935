import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { gatesResource } from '../../domain/resource/gate.ts';
import { environmentName } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import { readGates } from '../http/gate.ts';
import { LaunchGatesResponse } from '../schemas/launch-gate.ts';

/** How the launch gates stand (contract §14). A gate is shown as open when it is open in every corridor. */
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
          summary: 'Read how the launch gates stand',
          description:
            'What stands before real value movement. The local sandbox only simulates, which a gate without evidence ' +
            'does not forbid; elsewhere one closed gate forbids every value operation.',
          response: { 200: LaunchGatesResponse },
        },
      },
      async (request) => gatesResource(environmentName(deps.runtime), await readGates(deps, request.log)),
    );
  };
