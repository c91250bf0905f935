/** What there is to see: an organization with settlements that settled, wait for money and wait for a verification, made over HTTP. */
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';

export type Subjects = {
  readonly apiKey: string;
  readonly certificateId: string;
  /** Ids of settlements. */
  readonly settled: string;
  readonly waiting: string;
};

const WAIT_MS = 60_000;
const POLL_MS = 200;

const Organization = z.object({ api_key: z.string() });
const Recipient = z.object({ recipient_id: z.string() });
const Settlement = z.object({ settlement_id: z.string(), status: z.string(), certificate_id: z.string().nullish() });

/** @throws Error when the stack answers otherwise than it should */
export async function makeSubjects(baseUrl: string): Promise<Subjects> {
  const call = async <T>(
    schema: z.ZodType<T>,
    path: string,
    headers: Record<string, string>,
    body?: unknown,
  ): Promise<T> => {
    const sent =
      body === undefined
        ? { headers }
        : { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) };
    const answer = await fetch(`${baseUrl}${path}`, sent);
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
    return schema.parse(await answer.json());
  };
  const { api_key: apiKey } = await call(
    Organization,
    '/v1/orgs',
    {},
    { name: 'Acme Remittances', country: 'US', contact_email: 'dev@acme.example' },
  );
  const key = { 'x-api-key': apiKey };
  const settle = async (cardToken: string, amount: string, status: string) => {
    const bankDetails = {
      bank_name: 'Example Bank of Jamaica',
      account_number: '004512378',
      account_type: 'savings',
      currency: 'JMD',
    };
    const recipient = {
      kind: 'contractor',
      entity_type: 'individual',
      name: 'Marcia Brown',
      country: 'JM',
      bank_details: bankDetails,
    };
    const { recipient_id } = await call(Recipient, '/v1/recipients', key, recipient);
    const order = {
      corridor: 'US-JM',
      amount,
      recipient_id,
      payment_method: 'card',
      payout_rail: 'bank_transfer',
      card_token: cardToken,
    };
    const { settlement_id: id } = await call(
      Settlement,
      '/v2/settle',
      { ...key, 'idempotency-key': crypto.randomUUID() },
      order,
    );
    for (const end = Date.now() + WAIT_MS; ; await delay(POLL_MS)) {
      const settlement = await call(Settlement, `/v2/settle/${id}`, key);
      if (settlement.status === status) return settlement;
      if (Date.now() > end) throw new Error(`Settlement ${id} is ${settlement.status} and not ${status}.`);
    }
  };
  const [settled, waiting] = await Promise.all([
    settle('tok_visa', '250.00', 'settled'),
    settle('tok_manual', '250.00', 'awaiting_funds'),
    settle('tok_visa', '1000.00', 'compliance_hold'),
    settle('tok_declined', '80.00', 'failed'),
  ]);
  return {
    apiKey,
    certificateId: settled.certificate_id ?? '',
    settled: settled.settlement_id,
    waiting: waiting.settlement_id,
  };
}
