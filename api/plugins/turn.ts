/**
 * Whose turn a request's statements wait for (`db/tenant.ts`). The lookup of a credential comes before, and
 * waits in the turn of what is known by then (`http/key-lookup.ts`). An operation of low priority also waits for one of
 * few seats: many requests that change keys or read lists would slow each statement of a payment down.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { addressTenant, asTenant, takeSeat, WAITING } from '../../db/tenant.ts';
import { createTurns, type Turns } from '../../db/turns.ts';
import { whenOver } from '../http/request-end.ts';
import { isLowPriority } from '../route-config.ts';

/**
 * Requests of low priority that are handled at once, in one process, and how long one waits. Those of a tenant are
 * handled one after another: its quota allows no more of them in a second than that.
 */
export const LOW_PRIORITY = { seats: 4, seatsOfTenant: 1, timeoutMs: 10_000 } as const;
export type LowPriority = Readonly<Record<keyof typeof LOW_PRIORITY, number>>;

declare module 'fastify' {
  interface FastifyInstance {
    /** Of requests of low priority. */
    lowPriority: Turns;
  }
}

const tenantOf = ({ principal, consumer, clientAddress }: FastifyRequest): string =>
  principal?.orgId ?? consumer?.orgId ?? addressTenant(clientAddress.limitKey);

export const turn = fp(async (app: FastifyInstance, limits: LowPriority) => {
  const turns = createTurns({ ...WAITING, ...limits });
  /** What gives the seat of a request back. */
  const leaveOf = new WeakMap<FastifyRequest, () => void>();
  app.decorate('lowPriority', turns);

  // Once the body is read: its reader would lose the tenant.
  app.addHook('preHandler', (request, reply, done) => {
    const tenant = tenantOf(request);
    if (!isLowPriority(request)) return asTenant(tenant, done);
    const seat = new Promise<void>((begin, refuse) =>
      takeSeat(turns, tenant, { ...limits, subject: 'its turn', begin, refuse }),
    );
    const begin = (): void => {
      const leave = (): void => {
        if (leaveOf.delete(request)) turns.leave(tenant);
      };
      leaveOf.set(request, leave);
      whenOver(request.raw, reply.raw, leave);
      asTenant(tenant, done);
    };
    // After a wait, `begin` runs in the context of this request, not of the one that left the seat.
    seat.then(begin, done);
  });
  // Its answer is made. Who reads it slowly holds no seat.
  app.addHook('onSend', (request, _reply, payload, done) => {
    leaveOf.get(request)?.();
    done(null, payload);
  });
});
