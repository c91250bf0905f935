/** Rate limits as callers see them: the IETF headers `RateLimit-Policy` and `RateLimit`, and 429 with `Retry-After`. */
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyReply } from 'fastify';
import { DomainError } from '../../domain/error.ts';
import { type Budget, type Counted, isWithin, refusalDelayMs } from '../../domain/rate-limit.ts';

/** Says how much of a budget is left. */
export function showBudget(
  reply: FastifyReply,
  { name, quota, windowSeconds }: Omit<Budget, 'name'> & { readonly name: string },
  { used, resetSeconds }: Counted,
): void {
  reply.header('RateLimit-Policy', `"${name}";q=${quota};w=${windowSeconds}`);
  reply.header('RateLimit', `"${name}";r=${Math.max(0, quota - used)};t=${resetSeconds}`);
}

/** As `showBudget`; far over the quota, the answer is held back. */
export async function slowDown(reply: FastifyReply, budget: Budget, counted: Counted): Promise<void> {
  showBudget(reply, budget, counted);
  const held = refusalDelayMs(budget, counted);
  if (held > 0) await delay(held);
}

/**
 * As `slowDown`.
 *
 * @throws DomainError `rate_limited` when a request that cost so much is not within the quota
 */
export async function requireBudget(
  reply: FastifyReply,
  budget: Budget,
  counted: Counted,
  { cost = 1, detail }: { readonly cost?: number; readonly detail?: string } = {},
): Promise<void> {
  await slowDown(reply, budget, counted);
  if (isWithin(budget, counted, cost)) return;
  reply.header('Retry-After', String(counted.resetSeconds));
  throw new DomainError('rate_limited', {}, detail);
}
