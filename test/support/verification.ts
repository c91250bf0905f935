/** Verifications, and the events of their provider. */
import type pg from 'pg';
import { signIdverify } from '../../activities/providers/idverify-event.ts';
import { type Caller, TEST_SECRETS, type TestApi } from './api.ts';
import { type Json, jsonOf } from './partner.ts';

export const verifyBody = (caller: Caller, recipientId: string, overrides: Record<string, unknown> = {}) => ({
  recipient_id: recipientId,
  org_id: caller.orgId,
  ...overrides,
});

/** Opens a verification manually. Returns the body of the answer. */
export async function openVerification(
  api: TestApi,
  caller: Caller,
  recipientId: string,
  overrides: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Promise<Json> {
  const answer = await api.call(caller, 'POST', '/v1/kyc/verify', verifyBody(caller, recipientId, overrides), headers);
  if (answer.statusCode !== 201) throw new Error(`verification refused: ${answer.body}`);
  return jsonOf(answer);
}

export const complete = (api: TestApi, caller: Caller, verificationId: string, body: Record<string, unknown>) =>
  api.call(caller, 'POST', `/v1/kyc/${verificationId}/complete`, body);

export const statusOf = async (api: TestApi, caller: Caller, recipientId: string): Promise<Json> =>
  jsonOf(await api.call(caller, 'GET', `/v1/kyc/status/${recipientId}`));

/** The types of the events about an object, in their order. */
export async function eventTypesOf(api: TestApi, objectId: string): Promise<string[]> {
  const { rows } = await api.connection.pool.query<{ type: string }>(
    'SELECT type FROM events WHERE object_id = $1 ORDER BY sequence',
    [objectId],
  );
  return rows.map(({ type }) => type);
}

export const idverifyBody = (verificationId: string, overrides: Record<string, unknown> = {}) => ({
  type: 'applicantReviewed',
  applicantId: 'app-1',
  externalUserId: verificationId,
  correlationId: crypto.randomUUID(),
  reviewStatus: 'completed',
  reviewResult: { reviewAnswer: 'GREEN' },
  ...overrides,
});

export const RED = { reviewResult: { reviewAnswer: 'RED', rejectLabels: ['FORGERY'] } } as const;

/** Sends an event as the provider does. `headers` override the valid signature. */
export function sendIdverify(api: TestApi, event: object | Buffer, headers: Record<string, string> = {}) {
  const bytes = Buffer.isBuffer(event) ? event : Buffer.from(JSON.stringify(event));
  return api.call(null, 'POST', '/v2/webhooks/idverify', bytes, {
    ...signIdverify(TEST_SECRETS.idverify, bytes),
    ...headers,
  });
}

/** For `raceBehind`: the lock that changes of a recipient's verifications wait for. */
export const holdingRecipient = (recipientId: string) => ({
  hold: (holder: pg.PoolClient) =>
    holder.query('SELECT 1 FROM recipients WHERE recipient_id = $1 FOR UPDATE', [recipientId]),
});
