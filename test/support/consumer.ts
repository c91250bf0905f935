/** What a consumer's application does, as short functions. */
import { randomUUID } from 'node:crypto';
import { generateSessionToken, hashSessionToken } from '../../api/http/session-token.ts';
import { findOrCreateConsumer } from '../../db/commands/session.ts';
import { newId } from '../../db/id.ts';
import { insertSession } from '../../db/queries/consumer.ts';
import { SESSION_VALIDITY_MS } from '../../domain/consumer.ts';
import { hashConsumerContact } from '../../process/contact-hash.ts';
import type { TestApi } from './api.ts';
import { type Json, jsonOf, recipientBody } from './partner.ts';

export type ConsumerCaller = { readonly consumerId: string; readonly token: string };

export const newEmail = (): string => `${randomUUID()}@example.com`;

export const requestOtp = (api: TestApi, body: Record<string, unknown>) =>
  api.call(null, 'POST', '/consumer/auth/request-otp', body);

export const verifyOtp = (api: TestApi, challengeId: string, code: string) =>
  api.call(null, 'POST', '/consumer/auth/verify-otp', { challenge_id: challengeId, code });

/** Another code than this one. */
export const otherThan = (code: string): string => String((Number(code) + 1) % 1_000_000).padStart(6, '0');

/** A new challenge, with the code that the local sandbox shows. */
export async function challenge(
  api: TestApi,
  body: Record<string, unknown> = { email: newEmail() },
): Promise<{ readonly id: string; readonly code: string }> {
  const answer = await requestOtp(api, body);
  if (answer.statusCode !== 200) throw new Error(`no code: ${answer.body}`);
  const { challenge_id: id, sandbox_code: code } = jsonOf(answer);
  return { id, code };
}

/** Signs a new consumer in, so that tests share nothing, or the consumer of this contact. */
export async function signIn(api: TestApi, body?: Record<string, unknown>): Promise<ConsumerCaller> {
  const { id, code } = await challenge(api, body);
  const answer = await verifyOtp(api, id, code);
  if (answer.statusCode !== 200) throw new Error(`no session: ${answer.body}`);
  const { consumer_id: consumerId, access_token: token } = jsonOf(answer);
  return { consumerId, token };
}

export const callAs = (
  api: TestApi,
  consumer: ConsumerCaller | null,
  method: 'GET' | 'POST',
  url: string,
  body?: unknown,
  headers: Record<string, string> = {},
) =>
  api.call(null, method, url, body, { ...(consumer ? { authorization: `Bearer ${consumer.token}` } : {}), ...headers });

/** A partner's body without the fields that a consumer does not give. */
export function consumerRecipientBody(overrides: Record<string, unknown> = {}): Record<string, unknown> {
  const { kind: _kind, ...body } = recipientBody();
  return { ...body, ...overrides };
}

export async function createConsumerRecipient(
  api: TestApi,
  consumer: ConsumerCaller,
  overrides: Record<string, unknown> = {},
): Promise<string> {
  const answer = await callAs(api, consumer, 'POST', '/consumer/recipients', consumerRecipientBody(overrides));
  if (answer.statusCode !== 201) throw new Error(`recipient refused: ${answer.body}`);
  return jsonOf(answer).recipient_id;
}

export const quoteBody = (overrides: Record<string, unknown> = {}) => ({
  corridor: 'US-JM',
  amount: '250.00',
  payment_method: 'card',
  ...overrides,
});

export async function createQuote(
  api: TestApi,
  consumer: ConsumerCaller,
  overrides: Record<string, unknown> = {},
): Promise<Json> {
  const answer = await callAs(api, consumer, 'POST', '/consumer/quote', quoteBody(overrides));
  if (answer.statusCode !== 200) throw new Error(`no quote: ${answer.body}`);
  return jsonOf(answer);
}

export const transferBody = (recipientId: string, overrides: Record<string, unknown> = {}) => ({
  ...quoteBody(),
  recipient_id: recipientId,
  card_token: 'tok_visa',
  ...overrides,
});

export const transfer = (api: TestApi, consumer: ConsumerCaller, body: unknown, key: string = randomUUID()) =>
  callAs(api, consumer, 'POST', '/consumer/transfers', body, { 'idempotency-key': key });

/** A consumer with a session, inserted where the runtime can send no code. */
export async function insertConsumerSession(api: TestApi): Promise<ConsumerCaller> {
  const { db } = api.connection;
  const createdAt = api.deps.now();
  const token = generateSessionToken();
  const consumer = await db.transaction(async (tx) => {
    const contact = { channel: 'email', address: newEmail() } as const;
    const hashes = [hashConsumerContact(api.deps.config.apiKeyPeppers[0], contact)] as const;
    const found = await findOrCreateConsumer(api.deps, tx, { contact, hashes, at: createdAt });
    const session = {
      sessionId: newId(),
      consumerId: found.consumerId,
      createdAt,
      expiresAt: new Date(createdAt.getTime() + SESSION_VALIDITY_MS),
    };
    await insertSession(tx, session, hashSessionToken(api.deps.config.apiKeyPeppers[0], token));
    return found;
  });
  return { consumerId: consumer.consumerId, token };
}
