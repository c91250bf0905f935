/**
 * The intent to create something: the idempotency key and the exact text that belongs to it. It is plain data. Store it
 * before you send it, and whatever happens then, sending it again creates nothing twice:
 *
 *   const intent = client.settlements.prepare({ … });
 *   await save(JSON.stringify(intent));
 *   const settlement = await client.settlements.create(intent);
 */
import { randomUUID } from 'node:crypto';

declare const ANSWER: unique symbol;

/** It holds the body, with what is secret in it (an account number, a card's token). */
export type Intent<Answer = unknown> = {
  readonly method: 'POST';
  readonly path: string;
  readonly idempotency_key: string;
  /** JSON. The key belongs to these bytes: the same fields in another order are another command. */
  readonly body: string;
  /** Never set. It only carries the type of the answer. */
  readonly [ANSWER]?: Answer;
};

export type KeyOptions = {
  /** Your own key instead of a random one: 16 to 128 letters, digits and `._:-`. Never use one for two commands. */
  readonly idempotencyKey?: string | undefined;
};

export const prepareIntent = <Answer>(
  path: string,
  fields: unknown,
  { idempotencyKey = randomUUID() }: KeyOptions = {},
): Intent<Answer> => ({
  method: 'POST',
  path,
  idempotency_key: idempotencyKey,
  body: JSON.stringify(fields ?? {}),
});

export const isIntent = (value: unknown): value is Intent =>
  typeof value === 'object' &&
  value !== null &&
  'method' in value &&
  value.method === 'POST' &&
  'path' in value &&
  typeof value.path === 'string' &&
  'idempotency_key' in value &&
  typeof value.idempotency_key === 'string' &&
  'body' in value &&
  typeof value.body === 'string';
