/**
 * Rate limits (contract §2). A request with a credential is counted where the credential is looked up
 * (`authentication.ts`), for its organization. This plugin counts the others, by client address, and what answers
 * weigh. All processes share the counts, except those of pages and of unknown addresses and methods, which each process
 * keeps in its memory. A request is counted before its body is read. Provider events and health checks are not counted.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import {
  addressCaller,
  callerOf,
  countRequests,
  deleteRateLimits,
  organizationCaller,
} from '../../db/queries/rate-limit.ts';
import { addressTenant, asTenant } from '../../db/tenant.ts';
import { type Budget, budgetsOf, budgetsOfOrganization, type Counted, weightOf } from '../../domain/rate-limit.ts';
import type { ApiDeps } from '../deps.ts';
import { createAddressCount } from '../http/address-count.ts';
import { STATUS_OF } from '../http/error-handler.ts';
import { requireBudget, showBudget, slowDown } from '../http/rate-limit.ts';
import { costOf, type RouteConfig } from '../route-config.ts';

const CLEANUP_INTERVAL_MS = 10 * 60_000;
/** The access of an address without a route. */
const UNKNOWN: RouteConfig = { auth: 'none', budget: 'page' };

export const rateLimit = fp(async (app: FastifyInstance, { deps }: { deps: ApiDeps }) => {
  const budgets = budgetsOf(deps.config.rateLimitPerMinute);
  /** Whose budgets an answer uses. What is left of the first one is shown as that of `budget`. */
  const weighed = (
    { principal, consumer, clientAddress: { limitKey } }: FastifyRequest,
    { auth, budget = 'default', uncounted }: RouteConfig,
  ): { readonly budget: Budget; readonly callers: readonly string[] } => {
    if (principal)
      return {
        budget: budgetsOfOrganization(principal.allowance, deps.config.rateLimitPerMinute).default,
        callers: [organizationCaller(principal.orgId), addressCaller(limitKey)],
      };
    if (consumer) return { budget: budgets.default, callers: [organizationCaller(consumer.orgId)] };
    const isCounted = auth !== 'signature' && !uncounted;
    return { budget: budgets[budget], callers: isCounted ? [callerOf(budgets[budget], limitKey)] : [] };
  };
  const pages = createAddressCount(budgets.page);
  /** @returns the count of the first caller */
  const count = async (budget: Budget, callers: readonly string[], cost: number): Promise<Counted | undefined> => {
    const [first] = callers;
    if (budget === budgets.page && first !== undefined) return pages.add(first, cost);
    const { windowSeconds } = budget;
    const [counted] = await countRequests(
      deps.db,
      callers.map((caller) => ({ caller, windowSeconds, cost })),
    );
    return counted;
  };
  const countAddress = (budget: Budget, limitKey: string, cost = 1): Promise<Counted | undefined> =>
    asTenant(addressTenant(limitKey), () => count(budget, [callerOf(budget, limitKey)], cost));
  // Not an async function: most requests have a credential and wait for nothing here.
  app.addHook('onRequest', (request, reply, done) => {
    const { access = UNKNOWN } = request.routeOptions.config;
    if (access.auth === 'signature' || access.uncounted || access.countsFailures) return done();
    if (request.principal || request.consumer) return done();
    const budget = budgets[access.budget ?? 'default'];
    const cost = costOf(access, request);
    countAddress(budget, request.clientAddress.limitKey, cost)
      .then((counted) => counted && requireBudget(reply, budget, counted, { cost }))
      .then(() => done(), done);
  });
  // Not 429, which promises that nothing was done: a try of a code is counted, and a client repeats 429 by itself.
  app.addHook('onSend', (request, reply, payload, done) => {
    const isFailure = request.routeOptions.config.access?.countsFailures && isRefusal(reply.statusCode);
    if (!isFailure) return done(null, payload);
    countAddress(budgets.default, request.clientAddress.limitKey)
      .then((counted) => counted && slowDown(reply, budgets.default, counted))
      .catch((error: unknown) => request.log.warn({ err: error }, 'a failed request could not be counted'))
      .then(() => done(null, payload), done);
  });
  // What an answer weighs is known only now. It is sent all the same: the work is done, and the next request waits.
  app.addHook('onSend', (request, reply, payload, done) => {
    const access = request.routeOptions.config.access;
    const weight = access && access.cost === undefined ? weightOf(bytesOf(payload)) : 0;
    if (!access || weight === 0) return done(null, payload);
    const { budget, callers } = weighed(request, access);
    if (callers.length === 0) return done(null, payload);
    count(budget, callers, weight)
      .then((counted) => counted && showBudget(reply, budget, counted))
      .catch((error: unknown) => request.log.warn({ err: error }, 'the weight of an answer could not be counted'))
      .then(() => done(null, payload), done);
  });
  const cleanup = setInterval(() => {
    deleteRateLimits(deps.db).catch((error: unknown) =>
      app.log.warn({ err: error }, 'old rate limit counts could not be deleted'),
    );
  }, CLEANUP_INTERVAL_MS);
  app.addHook('onClose', async () => clearInterval(cleanup));
});

/** Whether the request itself was refused: the service did not fail, and the caller had not sent too many. */
const isRefusal = (status: number): boolean => status >= 400 && status < 500 && status !== STATUS_OF.rate_limited;

const bytesOf = (payload: unknown): number =>
  typeof payload === 'string' || Buffer.isBuffer(payload) ? Buffer.byteLength(payload) : 0;
