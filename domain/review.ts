/** Operators' decision about a payout whose outcome stayed unknown (contract §6). */
import { isRemote, type RuntimeEnvironment } from './runtime.ts';

export const RESOLUTION_OUTCOMES = ['paid', 'refused'] as const;

export type Resolution = { readonly outcome: (typeof RESOLUTION_OUTCOMES)[number] };

/** What one operator has asked for. `agreedAt` is set once it may be carried out. */
export type ReviewRequest = Resolution & {
  readonly requestedBy: string;
  readonly requestedAt: Date;
  /** Null in the local sandbox, where one operator suffices. */
  readonly confirmedBy: string | null;
  readonly agreedAt: Date | null;
};

/** A request that nobody confirmed in this time is asked for again. */
const CONFIRM_WITHIN_MS = 24 * 60 * 60_000;

/**
 * What stands after an operator has asked for an outcome. Outside of the local sandbox a second operator must ask for
 * the same one; another outcome replaces a request that is not agreed. What is agreed stays.
 */
export function requestAfter(
  standing: ReviewRequest | undefined,
  { outcome, operator, at }: Resolution & { readonly operator: string; readonly at: Date },
  runtime: RuntimeEnvironment,
): ReviewRequest {
  if (standing?.agreedAt) return standing;
  const asked = { outcome, requestedBy: operator, requestedAt: at, confirmedBy: null };
  if (!isRemote(runtime)) return { ...asked, agreedAt: at };
  const isSame = standing?.outcome === outcome && at.getTime() - standing.requestedAt.getTime() < CONFIRM_WITHIN_MS;
  if (!isSame) return { ...asked, agreedAt: null };
  return standing.requestedBy === operator ? standing : { ...standing, confirmedBy: operator, agreedAt: at };
}
