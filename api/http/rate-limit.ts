/** Rate limits as callers see them: the IETF headers `RateLimit-Policy` and `RateLimit`, and 429 with `Retry-After`. */
import type { FastifyReply } from 'fastify';
import { DomainError } from '../../domain/error.ts';
import type { Budget, Counted } from '../../domain/rate-limit.ts';

/**
 * Says how much of a budget is left.
 *
 * @throws DomainError `rate_limited` when the count is over the quota
 */
export function requireBudget(
  reply: FastifyReply,
  { name, quota, windowSeconds }: Budget,
  { used, resetSeconds }: Counted,
  detail?: string,
): void {
  reply.header('RateLimit-Policy', `"${name}";q=${quota};w=${windowSeconds}`);
  reply.header('RateLimit', `"${name}";r=${Math.max(0, quota - used)};t=${resetSeconds}`);
  if (used <= quota) return;
  reply.header('Retry-After', String(resetSeconds));
  throw new DomainError('rate_limited', {}, detail);
}
