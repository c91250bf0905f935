/**
 * Rate limits (contract §2). A request with a credential is counted where the credential is looked up
 * (`authentication.ts`), for its organization. This plugin counts the others, by client address. All processes share
 * the counts. A request is counted before its body is read. Provider events and health checks are not
 * counted.
 */
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { countRequests, deleteRateLimits, LONG_COUNT_PREFIX } from '../../db/queries/rate-limit.ts';
import { type BudgetName, budgetsOf } from '../../domain/rate-limit.ts';
import type { ApiDeps } from '../deps.ts';
import { requireBudget } from '../http/rate-limit.ts';
import { costOf } from '../route-config.ts';

const CLEANUP_INTERVAL_MS = 10 * 60_000;

export const rateLimit = fp(async (app: FastifyInstance, { deps }: { deps: ApiDeps }) => {
  const budgets = budgetsOf(deps.config.rateLimitPerMinute);
  // Not an async function: most requests have a credential and wait for nothing here.
  app.addHook('onRequest', (request, reply, done) => {
    const access = request.routeOptions.config.access;
    if (!access || access.internal || access.auth === 'signature' || access.uncounted) return done();
    if (request.principal || request.consumer) return done();
    const budget = budgets[access.budget ?? 'default'];
    const { windowSeconds } = budget;
    const caller = callerOf(budget.name, request.clientAddress.limitKey);
    countRequests(deps.db, [{ caller, windowSeconds, cost: costOf(access, request) }])
      .then(([counted]) => counted && requireBudget(reply, budget, counted))
      .then(() => done(), done);
  });
  const cleanup = setInterval(() => {
    deleteRateLimits(deps.db).catch((error: unknown) =>
      app.log.warn({ err: error }, 'old rate limit counts could not be deleted'),
    );
  }, CLEANUP_INTERVAL_MS);
  app.addHook('onClose', async () => clearInterval(cleanup));
});

const callerOf = (budget: BudgetName, address: string): string =>
  `${budget === 'one-time-code' ? LONG_COUNT_PREFIX : ''}${budget}:${address}`;
