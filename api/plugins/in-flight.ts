/**
 * How many requests may be under way at the same time, of one organization and of one address. One more is 429 at once
 * (contract §2): it costs nothing but its lookup.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import fp from 'fastify-plugin';
import { createPlaces } from '../../db/places.ts';
import { DomainError } from '../../domain/error.ts';
import { showBudget } from '../http/rate-limit.ts';
import { isOver, whenOver } from '../http/request-end.ts';

/** In one process. Those of an address are those of all organizations behind it. */
export type InFlight = { readonly ofOrganization: number; readonly ofAddress: number };
export const IN_FLIGHT: InFlight = { ofOrganization: 320, ofAddress: 640 };

const RETRY_AFTER_SECONDS = 1;

/** Registered before authentication for addresses; `organizationPlaces` follows it for organizations. */
export const addressPlaces = fp(async (app: FastifyInstance, { ofAddress }: InFlight) => {
  const places = createPlaces(ofAddress);
  app.addHook('onRequest', (request, reply, done) => {
    const { limitKey } = request.clientAddress;
    if (request.routeOptions.config.access?.uncounted) return done();
    if (!places.enter(limitKey)) refuse(reply, ofAddress);
    whenOver(request.raw, reply.raw, () => places.leave(limitKey));
    done();
  });
});

export const organizationPlaces = fp(async (app: FastifyInstance, { ofOrganization }: InFlight) => {
  const places = createPlaces(ofOrganization);
  app.addHook('onRequest', (request, reply, done) => {
    const orgId = request.principal?.orgId ?? request.consumer?.orgId;
    if (orgId === undefined || isOver(request.raw, reply.raw)) return done();
    if (!places.enter(orgId)) refuse(reply, ofOrganization);
    whenOver(request.raw, reply.raw, () => places.leave(orgId));
    done();
  });
});

/** @throws DomainError `rate_limited` */
function refuse(reply: FastifyReply, quota: number): never {
  reply.header('Retry-After', String(RETRY_AFTER_SECONDS));
  const budget = { name: 'under-way', quota, windowSeconds: RETRY_AFTER_SECONDS };
  showBudget(reply, budget, { used: quota, resetSeconds: RETRY_AFTER_SECONDS });
  throw new DomainError(
    'rate_limited',
    {},
    'Too many of your requests are under way at the same time. Wait for answers before you send more.',
  );
}
