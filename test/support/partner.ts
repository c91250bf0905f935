/** What a partner's application does, as short functions. */
import type { LightMyRequestResponse } from 'fastify';
import { vi } from 'vitest';
import type { Caller, TestApi } from './api.ts';
import { WAIT } from './patience.ts';

const NOT_MODIFIED = 304;

// biome-ignore lint/suspicious/noExplicitAny: a test reads any field of an answer.
export type Json = any;

export const jsonOf = (answer: LightMyRequestResponse): Json => answer.json();

/** A caller with the key that an answer shows. */
export const callerOf = ({ org_id: orgId, key_id: keyId, api_key: apiKey }: Json): Caller => ({ orgId, keyId, apiKey });

/** Gives an organization another environment, as if it had signed up there: two environments may use one database. */
export const changeEnvironment = (
  api: TestApi,
  { orgId }: Pick<Caller, 'orgId'>,
  environment: 'production' | 'local sandbox' = 'production',
) => api.owner.pool.query('UPDATE organizations SET environment = $2 WHERE org_id = $1', [orgId, environment]);

export const recipientBody = (overrides: Record<string, unknown> = {}) => ({
  kind: 'contractor',
  entity_type: 'individual',
  name: 'Marcia Brown',
  country: 'JM',
  bank_details: { bank_name: 'National Commercial Bank', account_number: '123456789', currency: 'JMD' },
  ...overrides,
});

export async function createRecipient(
  api: TestApi,
  caller: Caller,
  overrides: Record<string, unknown> = {},
): Promise<string> {
  const answer = await api.call(caller, 'POST', '/v1/recipients', recipientBody(overrides));
  if (answer.statusCode !== 201) throw new Error(`recipient refused: ${answer.body}`);
  return jsonOf(answer).recipient_id;
}

export const settleBody = (recipientId: string, overrides: Record<string, unknown> = {}) => ({
  corridor: 'US-JM',
  amount: '250.00',
  recipient_id: recipientId,
  payment_method: 'card',
  payout_rail: 'bank_transfer',
  card_token: 'tok_visa',
  ...overrides,
});

/** A settlement that is accepted for a new recipient, or for the one in `overrides`. @returns its id */
export async function settle(
  api: TestApi,
  caller: Caller,
  overrides: Record<string, unknown> = {},
  recipient: Record<string, unknown> = {},
): Promise<string> {
  const recipientId = overrides['recipient_id'] ?? (await createRecipient(api, caller, recipient));
  const body = settleBody(String(recipientId), overrides);
  const answer = await api.call(caller, 'POST', '/v2/settle', body, { 'idempotency-key': crypto.randomUUID() });
  if (answer.statusCode !== 202) throw new Error(`settlement refused: ${answer.body}`);
  return jsonOf(answer).settlement_id;
}

/** A new organization signs up from this address. */
export const signUpFrom = (api: TestApi, remoteAddress: string) =>
  api.app.inject({
    ...{ method: 'POST', url: '/v1/orgs', remoteAddress },
    payload: { name: 'Acme', country: 'JM', contact_email: 'dev@acme.example' },
  });

export async function readSettlement(api: TestApi, caller: Caller, settlementId: string): Promise<Json> {
  return jsonOf(await api.call(caller, 'GET', `/v2/settle/${settlementId}`));
}

/** Reads the settlement until it has this status. @throws Error with its timeline after 30 s */
export async function untilStatus(api: TestApi, caller: Caller, settlementId: string, status: string): Promise<Json> {
  let settlement: Json;
  let etag: string | undefined;
  const readInStatus = async (): Promise<Json> => {
    // A read that waits for a change leaves the processor to what is waited for.
    const headers = etag === undefined ? {} : { prefer: 'wait=2', 'if-none-match': etag };
    const answer = await api.call(caller, 'GET', `/v2/settle/${settlementId}`, undefined, headers);
    if (answer.statusCode !== NOT_MODIFIED) settlement = jsonOf(answer);
    etag = answer.headers.etag;
    if (settlement.status === status) return settlement;
    throw new Error(`still ${settlement.status}, not ${status}: ${JSON.stringify(settlement.timeline)}`);
  };
  return await vi.waitFor(readInStatus, WAIT);
}
