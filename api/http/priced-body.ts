/**
 * Price errors are reported after the idempotency lookup, which the handler does (contract §6). If a request is refused
 * before its handler runs, they are still reported first, because 422 precedes 503 (contract §2). So is an account that
 * is not the caller's, where the runtime has accounts at all.
 */
import type { FastifyRequest } from 'fastify';
import { payerOf } from '../../db/commands/acceptance.ts';
import { type FieldFault, requireNoFaults } from '../../domain/error.ts';
import type { Priced } from '../../domain/pricing.ts';
import type { ApiDeps } from '../deps.ts';

/** @throws ValidationError when the validated body was priced, and the price breaks a rule */
export function throwPriceFaults(body: unknown): void {
  requireNoFaults(faultsIn(body));
}

/** @throws ValidationError also when the account that pays is not the caller's */
export function throwPaymentFaults(deps: Pick<ApiDeps, 'sealer'>, { body, principal, consumer }: FastifyRequest): void {
  requireNoFaults([...faultsIn(body), ...accountFaults(deps, principal?.orgId ?? consumer?.orgId ?? '', body)]);
}

function accountFaults(deps: Pick<ApiDeps, 'sealer'>, orgId: string, body: unknown): readonly FieldFault[] {
  if (typeof body !== 'object' || body === null || !('banklink_account_token' in body)) return [];
  const { banklink_account_token: token } = body;
  if (typeof token !== 'string') return [];
  const payer = payerOf(deps, { orgId, cardToken: null, banklinkToken: token });
  return 'faults' in payer ? payer.faults : [];
}

function faultsIn(body: unknown): readonly FieldFault[] {
  if (typeof body !== 'object' || body === null || !('priced' in body)) return [];
  const priced = body.priced as Priced;
  return 'faults' in priced ? priced.faults : [];
}
