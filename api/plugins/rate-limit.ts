/**
 * Rate limits (contract §2). A request with a credential is counted where the credential is looked up
 * (`authentication.ts`), for its organization. This plugin counts the others, by client address, and what answers
 * weigh. All processes share the counts. A request is counted before its body is read. Provider events and health
 * checks are not counted. Unknown addresses and methods are counted in this process's memory.
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
import { type Budget, budgetsOf, budgetsOfOrganization, weightOf } from '../../domain/rate-limit.ts';
import type { ApiDeps } from '../deps.ts';
import { STATUS_OF } from '../http/error-handler.ts';
import { createFailureCount } from '../http/failure-count.ts';
import { requireBudget, showBudget, slowDown } from '../http/rate-limit.ts';
import { costOf, type RouteConfig } from '../route-config.ts';

const CLEANUP_INTERVAL_MS = 10 * 60_000;

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
  const unknown = createFailureCount(budgets.page);
  // Not an async function: most requests have a credential and wait for nothing here.
  app.addHook('onRequest', (request, reply, done) => {
    const access = request.routeOptions.config.access;
    if (!access || access.internal) {
      const counted = unknown.add(request.clientAddress.limitKey);
      if (counted.used <= budgets.page.quota) return done();
      requireBudget(reply, budgets.page, counted).then(() => done(), done);
      return;
    }
    if (access.auth === 'signature' || access.uncounted || access.countsFailures) return done();
    if (request.principal || request.consumer) return done();
    const budget = budgets[access.budget ?? 'default'];
    const { windowSeconds } = budget;
    const { limitKey } = request.clientAddress;
    const cost = costOf(access, request);
    const count = { caller: callerOf(budget, limitKey), windowSeconds, cost };
    asTenant(addressTenant(limitKey), () => countRequests(deps.db, [count]))
      .then(([counted]) => counted && requireBudget(reply, budget, counted, { cost }))
      .then(() => done(), done);
  });
  // Not 429, which promises that nothing was done: a try of a code is counted, and a client repeats 429 by itself.
  app.addHook('onSend', (request, reply, payload, done) => {
    const isFailure = request.routeOptions.config.access?.countsFailures && isRefusal(reply.statusCode);
    if (!isFailure) return done(null, payload);
    const { windowSeconds } = budgets.default;
    const { limitKey } = request.clientAddress;
    const count = { caller: callerOf(budgets.default, limitKey), windowSeconds, cost: 1 };
    asTenant(addressTenant(limitKey), () => countRequests(deps.db, [count]))
      .then(([counted]) => counted && slowDown(reply, budgets.default, counted))
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
    const { windowSeconds } = budget;
    countRequests(
      deps.db,
      callers.map((caller) => ({ caller, windowSeconds, cost: weight })),
    )
      .then(([counted]) => counted && showBudget(reply, budget, counted))
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

/** Of this request, by what it is: neither the service's own failure, nor of one too many at once. */
const isRefusal = (status: number): boolean => status >= 400 && status < 500 && status !== STATUS_OF.rate_limited;

const bytesOf = (payload: unknown): number =>
  typeof payload === 'string' || Buffer.isBuffer(payload) ? Buffer.byteLength(payload) : 0;
