/**
 * Price errors are reported after the idempotency lookup, which the handler does (contract §6). If a request is refused
 * before its handler runs, they are still reported first, because 422 precedes 503 (contract §2).
 */
import { type FieldFault, requireNoFaults } from '../../domain/error.ts';
import type { Priced } from '../../domain/pricing.ts';

/** @throws ValidationError when the validated body was priced, and the price breaks a rule */
export function throwPriceFaults(body: unknown): void {
  requireNoFaults(faultsIn(body));
}

function faultsIn(body: unknown): readonly FieldFault[] {
  if (typeof body !== 'object' || body === null || !('priced' in body)) return [];
  const priced = body.priced as Priced;
  return 'faults' in priced ? priced.faults : [];
}
