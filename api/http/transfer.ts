/** How the routes of transfers find the one that a request is about. */
import type { z } from 'zod';
import { getTransfer } from '../../db/queries/transfer.ts';
import type { SettlementWithHistory } from '../../domain/resource/settlement.ts';
import type { ApiDeps } from '../deps.ts';
import type { TransferPath } from '../schemas/transfer.ts';

/**
 * The consumer's transfer that the path names. The log line of the request gets the id of its settlement.
 *
 * @throws DomainError `not_found`
 */
export async function findTransfer(
  deps: ApiDeps,
  request: { readonly params: z.output<typeof TransferPath>; subjectId?: string },
  orgId: string,
): Promise<SettlementWithHistory> {
  const transfer = await getTransfer(deps, orgId, request.params.transfer_id);
  request.subjectId = transfer.settlementId;
  return transfer;
}
