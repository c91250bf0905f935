/** Settlements that nobody works on: accepted by the API and moved by hand, for what operators see of them. */
import { lockSettlement, moveSettlement } from '../../db/queries/settlement.ts';
import type { SettlementStatus } from '../../domain/settlement.ts';
import type { Caller, TestApi } from './api.ts';
import { createRecipient, jsonOf, settleBody } from './partner.ts';

/**
 * @param path the states it enters after `accepted`
 * @param at when it entered them
 */
export async function openSettlement(
  api: TestApi,
  caller: Caller,
  path: readonly SettlementStatus[] = [],
  at = new Date(),
): Promise<string> {
  const recipientId = await createRecipient({ api }, caller);
  const accepted = jsonOf(
    await api.call(caller, 'POST', '/v2/settle', settleBody(recipientId), { 'idempotency-key': crypto.randomUUID() }),
  );
  await enterStates(api, caller, accepted.settlement_id, path, at);
  return accepted.settlement_id;
}

export async function enterStates(
  api: TestApi,
  caller: Caller,
  settlementId: string,
  path: readonly SettlementStatus[],
  at = new Date(),
): Promise<void> {
  await api.connection.db.transaction(async (tx) => {
    let settlement = await lockSettlement(tx, caller.orgId, settlementId);
    for (const to of path) settlement = await moveSettlement(tx, settlement, { to, at, reason: 'test' });
  });
}
