/** A partner in the local sandbox: an organization with its first key, and what it settles by default. */
import { type Client, type ClientOptions, type components, createClient } from '../../clients/typescript/index.ts';

export type Partner = {
  readonly orgId: string;
  readonly apiKey: string;
  /** It authenticates with the key. */
  readonly client: Client;
};

/** Creates an organization. `options` are those of its client. */
export async function signUp(options: ClientOptions, name = 'Acme Remittances'): Promise<Partner> {
  const fields = { name, country: 'US', contact_email: 'dev@acme.example' };
  const { org_id: orgId, api_key: apiKey } = await createClient(options).organizations.create(fields);
  return { orgId, apiKey, client: createClient({ ...options, apiKey }) };
}

/** An individual in Jamaica with a bank account. In the sandbox the name decides about screening and payout. */
export const recipientBody = (name = 'Marcia Brown') =>
  ({
    kind: 'contractor',
    entity_type: 'individual',
    name,
    country: 'JM',
    bank_details: {
      bank_name: 'Example Bank of Jamaica',
      account_number: '004512378',
      account_type: 'savings',
      currency: 'JMD',
    },
  }) as const;

type SettlementFields = components['schemas']['SettleRequestV2'];

/** 250 US dollars by card to Jamaica. In the sandbox the card's token decides about the payment. */
export const cardSettlementBody = (recipientId: string, changes: Partial<SettlementFields> = {}): SettlementFields => ({
  corridor: 'US-JM',
  amount: '250.00',
  recipient_id: recipientId,
  payment_method: 'card',
  payout_rail: 'bank_transfer',
  card_token: 'tok_visa',
  ...changes,
});

/** Settles by card to a new recipient. @returns the settlement's id */
export async function settleByCard(
  { client }: Pick<Partner, 'client'>,
  changes: Partial<SettlementFields> = {},
  recipientName?: string,
): Promise<string> {
  const { recipient_id: recipientId } = await client.recipients.create(recipientBody(recipientName));
  return (await client.settlements.create(cardSettlementBody(recipientId, changes))).settlement_id;
}
