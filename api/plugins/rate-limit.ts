/**
 * Rate limits (contract §2): per key or per consumer if the caller is authenticated, otherwise per address. All
 * processes share the counts. A request is counted after authentication and before its body is read. Signed webhooks
 * and health checks are not counted.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { countRequest, deleteRateLimits } from '../../db/queries/rate-limit.ts';
import { DomainError } from '../../domain/error.ts';
import type { ApiDeps } from '../deps.ts';

const WINDOW_SECONDS = 60;
const WINDOW_MS = WINDOW_SECONDS * 1_000;
const CLEANUP_INTERVAL_MS = 10 * WINDOW_MS;

export const rateLimit = fp(async (app: FastifyInstance, { deps }: { deps: ApiDeps }) => {
  app.addHook('onRequest', async (request, reply) => {
    const access = request.routeOptions.config.access;
    if (!access || access.internal || access.auth === 'signature' || access.uncounted) return;
    await count(deps, request, reply, access.cost ?? 1);
  });
  const cleanup = setInterval(() => {
    deleteRateLimits(deps.db, new Date(deps.now().getTime() - CLEANUP_INTERVAL_MS)).catch((error: unknown) =>
      app.log.warn({ err: error }, 'old rate limit counts could not be deleted'),
    );
  }, CLEANUP_INTERVAL_MS);
  app.addHook('onClose', async () => clearInterval(cleanup));
});

/** @throws DomainError `rate_limited` */
async function count(deps: ApiDeps, request: FastifyRequest, reply: FastifyReply, cost: number): Promise<void> {
  const quota = deps.config.rateLimitPerMinute;
  const nowMs = deps.now().getTime();
  const windowStartMs = nowMs - (nowMs % WINDOW_MS);
  const used = await countRequest(deps.db, callerOf(request), new Date(windowStartMs), cost);
  const resetSeconds = Math.max(1, Math.ceil((windowStartMs + WINDOW_MS - nowMs) / 1_000));
  reply.header('RateLimit-Policy', `"default";q=${quota};w=${WINDOW_SECONDS}`);
  reply.header('RateLimit', `"default";r=${Math.max(0, quota - used)};t=${resetSeconds}`);
  if (used <= quota) return;
  reply.header('Retry-After', String(resetSeconds));
  throw new DomainError('rate_limited');
}

function callerOf({ principal, consumer, ip }: FastifyRequest): string {
  if (principal) return `key:${principal.keyId}`;
  return consumer ? `consumer:${consumer.orgId}` : `address:${ip}`;
}
