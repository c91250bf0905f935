const SECOND_MS = 1_000;

/** A `Retry-After` header of seconds or of an HTTP date, in milliseconds from `nowMs`; null when it is neither. */
export function retryAfterMsOf(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null;
  if (/^[0-9]{1,9}$/.test(header)) return Number(header) * SECOND_MS;
  const at = /GMT$/.test(header) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}
