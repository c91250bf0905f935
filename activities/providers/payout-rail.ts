/**
 * The payout rail. It is a simulation: there is no live rail. It confirms at once, unless the recipient's name selects
 * another answer (contract §6). It pays the frozen payee. A payout may be sent twice: the rail deduplicates by the
 * settlement's id.
 */
import { createHash } from 'node:crypto';
import { newId } from '../../db/id.ts';
import { DomainError } from '../../domain/error.ts';
import type { Payee } from '../../domain/payee.ts';
import { isRemote, type RuntimeEnvironment } from '../../domain/runtime.ts';
import { SANDBOX_NAMES } from '../../domain/sandbox/input.ts';
import type { NewEvidence, PAYOUT_ANSWERS } from '../../domain/settlement/evidence.ts';
import { FAILURES } from '../../domain/settlement/failure.ts';
import type { Settlement } from '../../domain/settlement/state.ts';

export type PayoutRail = {
  /**
   * @returns the rail's answer, or undefined when it has none yet
   * @throws DomainError `local_sandbox_only` in a remote runtime
   */
  send(settlement: Settlement, payee: Payee): Promise<NewEvidence | undefined>;
};

export const createPayoutRail = (runtime: RuntimeEnvironment): PayoutRail => ({
  async send({ settlementId }, { name }) {
    if (isRemote(runtime)) throw new DomainError('local_sandbox_only');
    if (name.includes(SANDBOX_NAMES.payoutPending)) return undefined;
    return payoutAnswer(
      settlementId,
      name.includes(SANDBOX_NAMES.payoutRefused) ? 'payout_refused' : 'payout_confirmed',
    );
  },
});

/** The rail's answer about a settlement. Every answer has the same id, so only the first one is recorded. */
export function payoutAnswer(settlementId: string, kind: (typeof PAYOUT_ANSWERS)[number]): NewEvidence {
  const eventId = `payout:${settlementId}`;
  return {
    evidenceId: newId(),
    provider: 'payout_rail',
    eventId,
    kind,
    amountMinor: null,
    currency: null,
    failure: kind === 'payout_refused' ? FAILURES.payoutRefused : null,
    sha256: createHash('sha256').update(`${eventId}:${kind}`).digest('hex'),
  };
}
