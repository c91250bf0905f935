/**
 * A partner in the local sandbox: an organization with its first key, its recipients and its settlements, over HTTP.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import type { ApiRequest, Client, Reply } from './client.ts';

export type Partner = {
  readonly orgId: string;
  readonly apiKey: string;
  /** A request with this partner's key. */
  call: Client['call'];
  /** @returns the recipient's id */
  createRecipient(changes?: object): Promise<string>;
  /** `POST /v2/settle` with an idempotency key of its own. */
  settle(body: object): Promise<Settlement>;
  /** @param waitSeconds how long the API may hold the answer back until the settlement changes (contract §6) */
  readSettlement(settlementId: string, waitSeconds?: number): Promise<Reply>;
  /**
   * Reads the settlement until it is as wanted.
   *
   * @param wanted says in the error what was waited for
   * @throws Error with the settlement as it was read last, when the time is over
   */
  waitForSettlement(
    settlementId: string,
    wanted: string,
    isWanted: (settlement: Reply['json']) => boolean,
  ): Promise<Reply>;
};

const Organization = z.object({ org_id: z.string(), api_key: z.string() });
const Recipient = z.object({ recipient_id: z.string() });
export const Settlement = z.object({ settlement_id: z.string(), status: z.string() });
export type Settlement = z.infer<typeof Settlement>;

const SETTLEMENT_TIMEOUT_MS = 60_000;
const READ_WAIT_SECONDS = 2;
const READ_PAUSE_MS = 250;

/** Creates an organization. The partner makes every request with `call`, so that a demo can print each of them. */
export async function signUp(call: Client['call'], name = 'Acme Remittances'): Promise<Partner> {
  const body = { name, country: 'US', contact_email: 'dev@acme.example' };
  const created = await call({ method: 'POST', path: '/v1/orgs', body, expectStatus: 201 });
  const { org_id: orgId, api_key: apiKey } = Organization.parse(created.json);
  const ask = (asked: ApiRequest) => call({ ...asked, apiKey });
  const readSettlement = (settlementId: string, waitSeconds?: number) =>
    ask({
      method: 'GET',
      path: `/v2/settle/${settlementId}`,
      ...(waitSeconds !== undefined && { headers: { Prefer: `wait=${waitSeconds}` } }),
      expectStatus: 200,
    });
  return {
    orgId,
    apiKey,
    call: ask,
    createRecipient: async (changes) => {
      const answer = await ask({
        method: 'POST',
        path: '/v1/recipients',
        body: recipientBody(changes),
        expectStatus: 201,
      });
      return Recipient.parse(answer.json).recipient_id;
    },
    settle: async (settlement) => {
      const answer = await ask({
        method: 'POST',
        path: '/v2/settle',
        idempotencyKey: randomUUID(),
        body: settlement,
        expectStatus: 202,
      });
      return Settlement.parse(answer.json);
    },
    readSettlement,
    waitForSettlement: async (settlementId, wanted, isWanted) => {
      const endMs = performance.now() + SETTLEMENT_TIMEOUT_MS;
      let answer = await readSettlement(settlementId);
      while (!isWanted(answer.json)) {
        if (performance.now() > endMs)
          throw new Error(`Settlement ${settlementId} was not ${wanted} in time: ${answer.text}`);
        // A waiting read ends early only at a new status, an exception or received money. Other changes need a new
        // read.
        await delay(READ_PAUSE_MS);
        answer = await readSettlement(settlementId, READ_WAIT_SECONDS);
      }
      return answer;
    },
  };
}

/** An individual in Jamaica with a bank account. In the sandbox the name decides about screening and payout. */
export const recipientBody = (changes: object = {}) => ({
  kind: 'contractor',
  entity_type: 'individual',
  name: 'Marcia Brown',
  country: 'JM',
  bank_details: {
    bank_name: 'Example Bank of Jamaica',
    account_number: '004512378',
    account_type: 'savings',
    currency: 'JMD',
  },
  ...changes,
});

/** 250 US dollars by card to Jamaica. In the sandbox the card's token decides about the payment. */
export const cardSettlementBody = (recipientId: string, changes: object = {}) => ({
  corridor: 'US-JM',
  amount: '250.00',
  recipient_id: recipientId,
  payment_method: 'card',
  payout_rail: 'bank_transfer',
  card_token: 'tok_visa',
  ...changes,
});
