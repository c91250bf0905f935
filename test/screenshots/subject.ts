/**
 * What the screenshots show: one organization with settlements that have settled, failed, or wait. Created over HTTP.
 */
import type { Settlement } from '../../clients/typescript/index.ts';
import { settleByCard, signUp } from '../../scripts/sandbox/partner.ts';

export type Subjects = {
  readonly apiKey: string;
  readonly certificateId: string;
  /** The id of a settlement that has settled. */
  readonly settled: string;
  /** The id of a settlement that waits for its money. */
  readonly waiting: string;
};

/** @throws Error when an answer or a status is not the expected one */
export async function createSubjects(baseUrl: string): Promise<Subjects> {
  const partner = await signUp({ baseUrl });
  const settle = async (cardToken: string, amount: string, wanted: Settlement['status']) => {
    const id = await settleByCard(partner, { card_token: cardToken, amount });
    return await partner.client.settlements.wait(id, { until: ({ status }) => status === wanted });
  };
  const [settled, waiting] = await Promise.all([
    settle('tok_visa', '250.00', 'settled'),
    settle('tok_manual', '250.00', 'awaiting_funds'),
    settle('tok_visa', '1000.00', 'compliance_hold'),
    settle('tok_declined', '80.00', 'failed'),
  ]);
  return {
    apiKey: partner.apiKey,
    certificateId: settled.certificate_id ?? '',
    settled: settled.settlement_id,
    waiting: waiting.settlement_id,
  };
}
