/**
 * What the screenshots show: one organization with settlements that have settled, failed, or wait. Created over HTTP.
 */
import { z } from 'zod';
import { createClient } from '../../scripts/partner/client.ts';
import { cardSettlementBody, signUp } from '../../scripts/partner/partner.ts';

export type Subjects = {
  readonly apiKey: string;
  readonly certificateId: string;
  /** The id of a settlement that has settled. */
  readonly settled: string;
  /** The id of a settlement that waits for its money. */
  readonly waiting: string;
};

const Settlement = z.object({ settlement_id: z.string(), certificate_id: z.string().nullish() });

/** @throws Error when an answer or a status is not the expected one */
export async function createSubjects(baseUrl: string): Promise<Subjects> {
  const client = createClient({ baseUrl: () => baseUrl });
  try {
    const partner = await signUp(client.call);
    const settle = async (cardToken: string, amount: string, status: string) => {
      const order = cardSettlementBody(await partner.createRecipient(), { card_token: cardToken, amount });
      const { settlement_id: id } = await partner.settle(order);
      const { json } = await partner.waitForSettlement(id, status, (settlement) => settlement['status'] === status);
      return Settlement.parse(json);
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
  } finally {
    await client.close();
  }
}
