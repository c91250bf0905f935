/**
 * Whose turn a request's statements wait for (`db/tenant.ts`). The lookup of a credential comes before, and
 * waits in the turn of what is known by then (`http/key-lookup.ts`).
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { addressTenant, asTenant } from '../../db/tenant.ts';

const tenantOf = ({ principal, consumer, clientAddress }: FastifyRequest): string =>
  principal?.orgId ?? consumer?.orgId ?? addressTenant(clientAddress.limitKey);

export const turn = fp(async (app: FastifyInstance) => {
  // Once the body is read: its reader would lose the tenant.
  app.addHook('preHandler', (request, _reply, done) => asTenant(tenantOf(request), done));
});
