/** Settlements moved step by step by the test itself, without Temporal: what a step does is decided in the database. */
import { settlementActivities } from '../../activities/settlement.ts';
import { findSettlement } from '../../db/queries/settlement.ts';
import type { Settlement } from '../../domain/settlement.ts';
import type { Caller, TestApi } from './api.ts';
import { createRecipient, type Json, jsonOf, readSettlement, settleBody } from './partner.ts';
import { activityDeps } from './stack.ts';

export const BY_WIRE = { payment_method: 'wire', card_token: undefined } as const;
export const BY_HAND = { card_token: 'tok_manual' } as const;

export function createSteps(api: TestApi, caller: Caller) {
  const activities = settlementActivities(activityDeps(api, 'http://127.0.0.1:1', { nudge: () => undefined }));
  const step = (settlementId: string, nowMs = Date.now()) => ({ settlementId, orgId: caller.orgId, nowMs });
  const accept = async (
    overrides: Record<string, unknown> = {},
    recipient: Record<string, unknown> = {},
  ): Promise<string> => {
    const body = settleBody(await createRecipient({ api }, caller, recipient), overrides);
    const answer = await api.call(caller, 'POST', '/v2/settle', body, { 'idempotency-key': crypto.randomUUID() });
    if (answer.statusCode !== 202) throw new Error(`settlement refused: ${answer.body}`);
    return jsonOf(answer).settlement_id;
  };
  /** By the legacy route, which is funded internally. */
  const acceptInternal = async (recipient: Record<string, unknown> = {}): Promise<string> => {
    const {
      payment_method: _method,
      card_token: _token,
      ...body
    } = settleBody(await createRecipient({ api }, caller, recipient));
    return jsonOf(await api.call(caller, 'POST', '/v1/caribbean/settle', body)).settlement_id;
  };
  const stored = async (settlementId: string): Promise<Settlement> => {
    const settlement = await findSettlement(api.connection.db, caller.orgId, settlementId);
    if (!settlement) throw new Error(`no settlement ${settlementId}`);
    return settlement;
  };
  return {
    activities,
    accept,
    step,
    stored,
    /** A settlement that waits for its money. */
    waiting: async (
      overrides: Record<string, unknown> = {},
      recipient: Record<string, unknown> = {},
    ): Promise<string> => {
      const id = await accept(overrides, recipient);
      await activities.admitSettlement(step(id));
      return id;
    },
    acceptInternal,
    /** A settlement whose payout was not answered for in three days. */
    inReview: async (): Promise<string> => {
      const id = await acceptInternal({ name: 'PAYOUT PENDING' });
      await activities.admitSettlement(step(id));
      await activities.sendPayout(step(id));
      const { expiresAt } = await stored(id);
      await activities.reviewPayout(step(id, expiresAt?.getTime()));
      return id;
    },
    read: (settlementId: string): Promise<Json> => readSettlement({ api }, caller, settlementId),
  };
}

export type Steps = ReturnType<typeof createSteps>;
