/**
 * Whose turn a request's statements wait for (`db/tenant.ts`). The lookup of a credential comes before: all together, or
 * in the turn of its address (`http/key-lookup.ts`). An operation of low priority also waits for one of few seats: many
 * requests that change keys or read lists would slow each statement of a payment down.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { addressTenant, asTenant, takeSeat, WAITING } from '../../db/tenant.ts';
import { createTurns, type Turns } from '../../db/turns.ts';
import { DomainError } from '../../domain/error.ts';
import { isOver, whenOver } from '../http/request-end.ts';
import { createSeatRest } from '../http/seat-rest.ts';
import { isLowPriority } from '../route-config.ts';

/**
 * How many requests of low priority a process handles at once, how many of one tenant, and how long one waits. A tenant
 * has one at a time: that is enough for its quota.
 */
export const LOW_PRIORITY = { seats: 2, seatsOfTenant: 1, timeoutMs: 10_000 } as const;
export type LowPriority = Readonly<Record<keyof typeof LOW_PRIORITY, number>>;

const READS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

declare module 'fastify' {
  interface FastifyInstance {
    /** The turns of requests of low priority. */
    lowPriority: Turns;
  }
  interface FastifyRequest {
    /**
     * Called between two steps of a long request of low priority. Requests that wait are handled first.
     *
     * @throws DomainError once the caller has gone
     */
    nextTurn(): Promise<void>;
  }
}

const tenantOf = ({ principal, consumer, clientAddress }: FastifyRequest): string =>
  principal?.orgId ?? consumer?.orgId ?? addressTenant(clientAddress.limitKey);

export const turn = fp(async (app: FastifyInstance, limits: LowPriority) => {
  const turns = createTurns({ ...WAITING, ...limits });
  const rest = createSeatRest();
  /** The tenant of each request that has a seat, and since when. */
  const seated = new WeakMap<FastifyRequest, { readonly tenant: string; readonly sinceMs: number }>();
  const sit = async (request: FastifyRequest, tenant: string): Promise<void> => {
    await new Promise<void>((begin, refuse) =>
      takeSeat(turns, tenant, { ...limits, subject: 'its turn', begin, refuse }),
    );
    seated.set(request, { tenant, sinceMs: performance.now() });
  };
  const leave = (request: FastifyRequest): void => {
    const seat = seated.get(request);
    if (!seat || !seated.delete(request)) return;
    const kind = READS.has(request.method) ? 'read' : 'change';
    const restMs = rest.after(request.clientAddress.limitKey, kind, performance.now() - seat.sinceMs);
    if (restMs === 0) turns.leave(seat.tenant);
    else setTimeout(() => turns.leave(seat.tenant), restMs).unref();
  };
  app.decorate('lowPriority', turns);
  app.decorateRequest('nextTurn', async function nextTurn(this: FastifyRequest) {
    const seat = seated.get(this);
    if (seat && turns.waiting() > 0) {
      leave(this);
      await sit(this, seat.tenant);
    }
    // Its seat is already free: the rest of its work would exceed what the seats allow.
    if (this.raw.socket.destroyed) throw new DomainError('request_timeout');
  });

  // Once the body is read: its reader would lose the tenant.
  app.addHook('preHandler', (request, reply, done) => {
    const tenant = tenantOf(request);
    if (!isLowPriority(request)) {
      rest.heard(request.clientAddress.limitKey);
      asTenant(tenant, done);
      return;
    }
    const begin = (): void => {
      // Its caller has gone: the seat would be free at once, and the work would go on without one.
      if (isOver(request.raw, reply.raw)) {
        leave(request);
        done(new DomainError('request_timeout'));
        return;
      }
      whenOver(request.raw, reply.raw, () => leave(request));
      asTenant(tenant, done);
    };
    // After a wait, `begin` runs in the context of this request, not of the one that left the seat.
    sit(request, tenant).then(begin, done);
  });
  // The answer is made. A caller who reads it slowly holds no seat.
  app.addHook('onSend', (request, _reply, payload, done) => {
    leave(request);
    done(null, payload);
  });
});
