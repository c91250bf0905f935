/**
 * One-time codes of the consumer's sign-in (contract §12). A request for a code does the same work for every contact:
 * the contact is looked up only after its code was proved. The code is sent through the outbox, so that the answer does
 * not wait for mail.
 */
import { createHmac, randomInt, timingSafeEqual } from 'node:crypto';
import type { Pepper } from '../../config/environment.ts';
import { openSession, storeChallenge } from '../../db/commands/session.ts';
import { newId } from '../../db/id.ts';
import { type Charge, callerOf } from '../../db/queries/rate-limit.ts';
import type { ConsumerSession } from '../../domain/consumer.ts';
import { DomainError } from '../../domain/error.ts';
import { type Contact, OTP_LIMITS, type OtpChallenge, otpBinding } from '../../domain/otp.ts';
import { budgetsOf, type Counted, REQUEST_WEIGHTS } from '../../domain/rate-limit.ts';
import { isRemote } from '../../domain/runtime.ts';
import { hashConsumerContact } from '../../process/contact-hash.ts';
import type { ApiDeps } from '../deps.ts';
import { generateSessionToken, hashSessionToken } from './session-token.ts';

export type OtpRequest =
  | { readonly retryAfterSeconds: number }
  | { readonly challengeId: string; readonly expiresAt: Date; readonly code: string; readonly counted: Counted };

type Asked = { readonly limitKey: string; readonly requestId: string };

/**
 * Makes a code for a contact, and sends it if mail is configured.
 *
 * @returns the seconds until the contact may get another code; or the code, which proves nothing when the count of the
 *   address is over its quota
 * @throws DomainError `provider_not_configured`
 */
export async function requestOtp(deps: ApiDeps, contact: Contact, { limitKey, requestId }: Asked): Promise<OtpRequest> {
  const mailed = contact.channel === 'email' && deps.config.smtpUrl !== undefined;
  if (!mailed && isRemote(deps.runtime)) throw new DomainError('provider_not_configured');
  const contactHashes = hashesOfContact(deps, contact);
  const { challenge, code } = newChallenge(deps, contact, mailed);
  const price = priceOf(deps, limitKey);
  const stored = await storeChallenge(deps, { challenge, contactHashes, price, mailed, requestId });
  if ('nextCodeAt' in stored) {
    const waitMs = stored.nextCodeAt.getTime() - challenge.createdAt.getTime();
    return { retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1_000)) };
  }
  return { challengeId: challenge.challengeId, expiresAt: challenge.expiresAt, code, ...stored };
}

/** What a code costs the address that asks for it. The address that proves it gets as much back. */
function priceOf({ config }: Pick<ApiDeps, 'config'>, limitKey: string): Charge {
  const budget = budgetsOf(config.rateLimitPerMinute)['one-time-code'];
  return { caller: callerOf(budget, limitKey), budget, cost: REQUEST_WEIGHTS.unprovedCode };
}

function newChallenge(
  deps: ApiDeps,
  contact: Contact,
  mailed: boolean,
): { readonly challenge: OtpChallenge; readonly code: string } {
  const challengeId = newId();
  const createdAt = deps.now();
  const [pepper] = deps.config.apiKeyPeppers;
  const code = String(randomInt(10 ** OTP_LIMITS.codeDigits)).padStart(OTP_LIMITS.codeDigits, '0');
  const challenge = {
    challengeId,
    channel: contact.channel,
    contactHash: hash(deps, pepper, 'contact', contact.channel, contact.address),
    contactSealed: deps.sealer.seal(contact.address, otpBinding('contact', challengeId)),
    codeHash: hash(deps, pepper, 'code', challengeId, code),
    codeSealed: mailed ? deps.sealer.seal(code, otpBinding('code', challengeId)) : null,
    attempts: 0,
    createdAt,
    expiresAt: new Date(createdAt.getTime() + OTP_LIMITS.validityMs),
    consumedAt: null,
  };
  return { challenge, code };
}

export type OpenedSession = { readonly token: string; readonly session: ConsumerSession };

type Try = { readonly challengeId: string; readonly code: string; readonly limitKey: string };

/**
 * Opens a session if the code is right. Only the tries of its challenge can refuse it, never what others did
 * (contract §12).
 *
 * @returns undefined for a code that is unknown, wrong, used, expired or tried too often
 */
export async function verifyOtp(
  deps: ApiDeps,
  { challengeId, code, limitKey }: Try,
): Promise<OpenedSession | undefined> {
  const token = generateSessionToken();
  const tokenHash = hashSessionToken(deps.config.apiKeyPeppers[0], token);
  const given = deps.config.apiKeyPeppers.map((pepper) => hash(deps, pepper, 'code', challengeId, code));
  const session = await openSession(deps, {
    challengeId,
    price: priceOf(deps, limitKey),
    prove: ({ channel, codeHash, contactSealed }) => {
      if (!isOneOf(given, codeHash)) return undefined;
      const address = deps.sealer.open(contactSealed, otpBinding('contact', challengeId)).toString();
      const contact: Contact = { channel, address };
      const [active, ...older] = deps.config.apiKeyPeppers;
      const consumerHashes = [
        hashConsumerContact(active, contact),
        ...older.map((pepper) => hashConsumerContact(pepper, contact)),
      ] as const;
      return { contact, contactHashes: hashesOfContact(deps, contact), consumerHashes, tokenHash };
    },
  });
  return session && { token, session };
}

/**
 * The pepper is not in the database. Without it all codes could be tried against a database dump. The local sandbox
 * shows its codes to whoever asks. In another environment on the same database they prove nothing and count for nothing.
 */
const hash = ({ runtime }: Pick<ApiDeps, 'runtime'>, { secret }: Pepper, ...parts: readonly string[]): Buffer =>
  createHmac('sha256', secret)
    .update([isRemote(runtime) ? 'otp' : 'shown-otp', ...parts].join('\0'))
    .digest();

/**
 * The contact's hash under each pepper: with a new pepper the contact's earlier requests still count, and its requests
 * still take the same lock.
 */
const hashesOfContact = (deps: ApiDeps, { channel, address }: Contact): Buffer[] =>
  deps.config.apiKeyPeppers.map((pepper) => hash(deps, pepper, 'contact', channel, address));

/** Compares with all candidates, so that the time it takes does not show which one matches. */
const isOneOf = (candidates: readonly Buffer[], stored: Buffer): boolean =>
  candidates.reduce((found, candidate) => timingSafeEqual(candidate, stored) || found, false);
