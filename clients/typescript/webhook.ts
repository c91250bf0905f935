/**
 * Verifies deliveries of events (Standard Webhooks, contract §11). It needs no client and no API key.
 *
 *   const event = webhooks.verify(rawBody, request.headers, process.env.WEBHOOK_SECRET);
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { type VerificationFault, WebhookVerificationError } from './error.ts';
import type { components } from './generated/openapi.ts';

/** An event, told apart by `type`. */
export type WebhookEvent = components['schemas']['WebhookEvent'];

/** `request.headers` of node:http, a `Headers` object, or a plain record. Names may be in any case. */
export type HeadersLike = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

export type VerifyOptions = {
  /** How old, or how far in the future, a delivery may be. 300 by default. */
  readonly toleranceSeconds?: number | undefined;
  /** The time to compare with, for your tests. */
  readonly now?: Date | undefined;
};

const TOLERANCE_SECONDS = 300;
const SECRET_PREFIX = 'whsec_';
const SIGNATURE_VERSION = 'v1,';

/**
 * @param body the exact bytes that arrived, before any parsing. A string is taken as UTF-8.
 * @param secrets `whsec_…`, one or several: while you deploy a new secret, give both
 * @returns the event. Its type may be newer than this client, so a `switch` over it needs a default
 * @throws WebhookVerificationError when the delivery must not be used
 * @throws TypeError when there is no secret, or one has not the form of a secret
 */
export function verifyWebhook(
  body: Uint8Array | string,
  headers: HeadersLike,
  secrets: string | readonly string[],
  { toleranceSeconds = TOLERANCE_SECONDS, now = new Date() }: VerifyOptions = {},
): WebhookEvent {
  const keys = [secrets].flat().map(keyOf);
  if (keys.length === 0) throw new TypeError('Give at least one webhook secret.');
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  const signatures = headerOf(headers, 'webhook-signature').split(' ');
  if (!/^[0-9]{1,12}$/.test(timestamp)) throw refused('malformed_timestamp');
  // Not `>`, which is false for a tolerance that is no number: then a delivery of any age would do.
  if (!(Math.abs(now.getTime() / 1_000 - Number(timestamp)) <= toleranceSeconds))
    throw refused('timestamp_outside_tolerance');
  const isSigned = keys.some((key) => {
    const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
    return signatures.some((signature) => matches(signature, expected));
  });
  if (!isSigned) throw refused('no_matching_signature');
  return eventOf(body, id);
}

const refused = (reason: VerificationFault): WebhookVerificationError => new WebhookVerificationError(reason);

function headerOf(headers: HeadersLike, name: string): string {
  const value =
    headers instanceof Headers
      ? headers.get(name)
      : Object.entries(headers).find(([given]) => given.toLowerCase() === name)?.[1];
  const text = typeof value === 'string' ? value : value?.join(' ');
  if (text === undefined || text === '') throw refused('missing_header');
  return text;
}

/** @throws TypeError when the secret has not the form of one: your configuration is wrong, not the delivery */
function keyOf(secret: string): Buffer {
  const text = secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : '';
  if (!/^[A-Za-z0-9+/]{16,}={0,2}$/.test(text)) throw new TypeError('A webhook secret is whsec_ and base64.');
  return Buffer.from(text, 'base64');
}

function matches(signature: string, expected: Buffer): boolean {
  if (!signature.startsWith(SIGNATURE_VERSION)) return false;
  const given = Buffer.from(signature.slice(SIGNATURE_VERSION.length), 'base64');
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function eventOf(body: Uint8Array | string, id: string): WebhookEvent {
  const event = parsed(body);
  if (!isEvent(event) || event.id !== id) throw refused('invalid_body');
  return event;
}

function parsed(body: Uint8Array | string): unknown {
  try {
    return JSON.parse(typeof body === 'string' ? body : new TextDecoder().decode(body));
  } catch {
    throw refused('invalid_body');
  }
}

/** The rest of its form is the contract of the API, which has signed it. */
const isEvent = (value: unknown): value is WebhookEvent =>
  typeof value === 'object' && value !== null && 'id' in value && 'type' in value && 'data' in value;
