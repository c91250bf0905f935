/** Rate limits as callers see them: the IETF headers `RateLimit-Policy` and `RateLimit`, and 429 with `Retry-After`. */
import type { FastifyReply } from 'fastify';
import { DomainError } from '../../domain/error.ts';
import type { Budget, Counted } from '../../domain/rate-limit.ts';

/** Says how much of a budget is left. */
export function showBudget(
  reply: FastifyReply,
  { name, quota, windowSeconds }: Budget,
  { used, resetSeconds }: Counted,
): void {
  reply.header('RateLimit-Policy', `"${name}";q=${quota};w=${windowSeconds}`);
  reply.header('RateLimit', `"${name}";r=${Math.max(0, quota - used)};t=${resetSeconds}`);
}

/**
 * As `showBudget`.
 *
 * @throws DomainError `rate_limited` when the count is over the quota
 */
export function requireBudget(reply: FastifyReply, budget: Budget, counted: Counted, detail?: string): void {
  showBudget(reply, budget, counted);
  if (counted.used <= budget.quota) return;
  reply.header('Retry-After', String(counted.resetSeconds));
  throw new DomainError('rate_limited', {}, detail);
}
