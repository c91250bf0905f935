/** Operators' decision about a payout whose outcome stayed unknown (contract §6). */
import { isRemote, type RuntimeEnvironment } from './runtime.ts';

export const RESOLUTION_OUTCOMES = ['paid', 'refused'] as const;

export type Resolution = { readonly outcome: (typeof RESOLUTION_OUTCOMES)[number] };

/** An outcome that an operator requested. `agreedAt` is set once it may be carried out. */
export type ReviewRequest = Resolution & {
  readonly requestedBy: string;
  readonly requestedAt: Date;
  /** Null in the local sandbox, where one operator suffices. */
  readonly confirmedBy: string | null;
  readonly agreedAt: Date | null;
};

/** An outcome that may be carried out, and since when. */
export type AgreedResolution = Resolution & { readonly at: Date };

export const agreedResolution = (request: ReviewRequest | undefined): AgreedResolution | undefined =>
  request?.agreedAt ? { outcome: request.outcome, at: request.agreedAt } : undefined;

/**
 * How long a second operator can confirm what one has requested: an outcome, an erasure or a new key. After that the
 * request is void and must be repeated.
 */
export const CONFIRM_WITHIN_MS = 24 * 60 * 60_000;

/** Whether the request is agreed, or can still be confirmed. */
export const isValidAt = ({ agreedAt, requestedAt }: ReviewRequest, at: Date): boolean =>
  agreedAt !== null || at.getTime() - requestedAt.getTime() < CONFIRM_WITHIN_MS;

/**
 * The request that is valid after an operator has requested an outcome. Outside of the local sandbox a second operator
 * must ask for the same one; another outcome replaces a request that is not agreed. What is agreed stays.
 */
export function requestAfter(
  earlier: ReviewRequest | undefined,
  { outcome, operator, at }: Resolution & { readonly operator: string; readonly at: Date },
  runtime: RuntimeEnvironment,
): ReviewRequest {
  if (earlier?.agreedAt) return earlier;
  const asked = { outcome, requestedBy: operator, requestedAt: at, confirmedBy: null };
  if (!isRemote(runtime)) return { ...asked, agreedAt: at };
  const isSame = earlier?.outcome === outcome && isValidAt(earlier, at);
  if (!isSame) return { ...asked, agreedAt: null };
  return earlier.requestedBy === operator ? earlier : { ...earlier, confirmedBy: operator, agreedAt: at };
}
