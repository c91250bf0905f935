/** What the three routes that accept a settlement have in common (contract §6, §12). */
import type { FastifyRequest } from 'fastify';
import type { SettlementRequest } from '../../db/commands/acceptance.ts';
import type { KeyedRequest } from '../../db/queries/idempotency-key.ts';
import type { Purpose } from '../../domain/settlement/state.ts';
import type { RouteConfig } from '../route-config.ts';
import { ACCEPTED_HEADERS, commandFingerprint } from './idempotent-answer.ts';

/** What each of these routes declares. */
export const ACCEPTS_SETTLEMENT = {
  remote: 'launch_gates_closed',
  refusals: ['not_found', 'idempotency_key_reused', 'state_conflict'],
  headers: ACCEPTED_HEADERS,
} as const satisfies Partial<RouteConfig>;

type Body = {
  readonly recipient_id: string;
  readonly purpose?: Purpose | undefined;
  readonly reference?: string | undefined;
  readonly metadata?: Record<string, string> | undefined;
  readonly card_token?: string | undefined;
  readonly banklink_account_token?: string | undefined;
};

/**
 * The command in a request, without its price.
 *
 * @param body all its fields: the key is bound to them. The fields that a route does not take are absent.
 */
export const settlementCommand = (
  request: FastifyRequest,
  { orgId, idempotencyKey }: Pick<KeyedRequest, 'orgId' | 'idempotencyKey'>,
  body: Body,
): Omit<SettlementRequest, 'priced' | 'origin'> => ({
  orgId,
  idempotencyKey,
  fingerprint: commandFingerprint(request, body),
  requestId: request.id,
  recipientId: body.recipient_id,
  purpose: body.purpose ?? null,
  reference: body.reference ?? null,
  metadata: body.metadata ?? {},
  cardToken: body.card_token ?? null,
  banklinkToken: body.banklink_account_token ?? null,
});
