/**
 * One-time codes of the consumer's sign-in (contract §12). A request for a code does the same work for every contact:
 * the contact is looked up only after its code was proved. The code is sent through the outbox, so that the answer does
 * not wait for mail.
 */
import { createHmac, randomInt, timingSafeEqual } from 'node:crypto';
import type { Pepper } from '../../config/environment.ts';
import { openSession, storeChallenge } from '../../db/commands/session.ts';
import { newId } from '../../db/id.ts';
import { countTry, countWrong, readWrong, releaseWrong } from '../../db/queries/otp.ts';
import type { ConsumerSession } from '../../domain/consumer.ts';
import { DomainError } from '../../domain/error.ts';
import { type Contact, OTP_LIMITS, type OtpChallenge, otpBinding, strictnessOf } from '../../domain/otp.ts';
import { type Budget, budgetsOf } from '../../domain/rate-limit.ts';
import { isRemote } from '../../domain/runtime.ts';
import { hashConsumerContact } from '../../process/contact-hash.ts';
import type { ApiDeps } from '../deps.ts';
import { generateSessionToken, hashSessionToken } from './session-token.ts';

export type OtpRequest =
  | { readonly challengeId: string; readonly expiresAt: Date; readonly code: string }
  | { readonly retryAfterSeconds: number };

/**
 * Makes a code for a contact, and sends it if mail is configured.
 *
 * @returns the challenge, or the seconds until the contact may get another code
 * @throws DomainError `provider_not_configured`
 */
export async function requestOtp(deps: ApiDeps, contact: Contact, requestId: string): Promise<OtpRequest> {
  const mailed = contact.channel === 'email' && deps.config.smtpUrl !== undefined;
  if (!mailed && isRemote(deps.runtime)) throw new DomainError('provider_not_configured');
  const contactHashes = hashesOfContact(deps, contact);
  const { quota, windowSeconds } = wrongCodes(deps);
  const { ofContact, overall } = await readWrong(deps.db, contactHashes, windowSeconds);
  const { requestsMax, triesMax } = strictnessOf({ ofContact, isOverall: overall >= quota });
  const { challenge, code } = newChallenge(deps, contact, { mailed, triesMax });
  const nextAt = await storeChallenge(deps, { challenge, contactHashes, requestsMax, mailed, requestId });
  if (nextAt !== undefined) {
    const waitMs = nextAt.getTime() - challenge.createdAt.getTime();
    return { retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1_000)) };
  }
  return { challengeId: challenge.challengeId, expiresAt: challenge.expiresAt, code };
}

function newChallenge(
  deps: ApiDeps,
  contact: Contact,
  { mailed, triesMax }: { readonly mailed: boolean; readonly triesMax: number },
): { readonly challenge: OtpChallenge; readonly code: string } {
  const challengeId = newId();
  const createdAt = deps.now();
  const [pepper] = deps.config.apiKeyPeppers;
  const code = String(randomInt(10 ** OTP_LIMITS.codeDigits)).padStart(OTP_LIMITS.codeDigits, '0');
  const challenge = {
    challengeId,
    channel: contact.channel,
    contactHash: hash(pepper, 'contact', contact.channel, contact.address),
    contactSealed: deps.sealer.seal(contact.address, otpBinding('contact', challengeId)),
    codeHash: hash(pepper, 'code', challengeId, code),
    codeSealed: mailed ? deps.sealer.seal(code, otpBinding('code', challengeId)) : null,
    attempts: OTP_LIMITS.triesMax - triesMax,
    createdAt,
    expiresAt: new Date(createdAt.getTime() + OTP_LIMITS.validityMs),
    consumedAt: null,
  };
  return { challenge, code };
}

export type OpenedSession = { readonly token: string; readonly session: ConsumerSession };

/**
 * Opens a session if the code is right. The try is counted and committed before the code is compared: on its challenge,
 * its contact, and all contacts together. Only the count of its challenge can refuse it: what others do wrong makes new
 * challenges stricter, and refuses no right code (contract §12).
 *
 * @throws DomainError `credential_invalid`, the same for a code that is unknown, wrong, used, expired or tried too
 *   often
 */
export async function verifyOtp(
  deps: ApiDeps,
  { challengeId, code }: { readonly challengeId: string; readonly code: string },
): Promise<OpenedSession> {
  const challenge = await countTry(deps.db, challengeId, deps.now());
  if (!challenge) throw refusal();
  await countWrong(deps.db, challenge.contactHash, wrongCodes(deps).windowSeconds);
  const given = deps.config.apiKeyPeppers.map((pepper) => hash(pepper, 'code', challengeId, code));
  if (!isOneOf(given, challenge.codeHash)) throw refusal();
  await releaseWrong(deps.db, challenge.contactHash);
  const address = deps.sealer.open(challenge.contactSealed, otpBinding('contact', challengeId)).toString();
  const contact: Contact = { channel: challenge.channel, address };
  const token = generateSessionToken();
  const tokenHash = hashSessionToken(deps.config.apiKeyPeppers[0], token);
  const contactHashes = hashesOfContact(deps, contact);
  const [active, ...older] = deps.config.apiKeyPeppers;
  const consumerHashes = [
    hashConsumerContact(active, contact),
    ...older.map((pepper) => hashConsumerContact(pepper, contact)),
  ] as const;
  const session = await openSession(deps, { challengeId, contact, contactHashes, consumerHashes, tokenHash });
  if (!session) throw refusal();
  return { token, session };
}

/** The budget of wrong codes of all contacts together. */
const wrongCodes = ({ config }: Pick<ApiDeps, 'config'>): Budget => budgetsOf(config.rateLimitPerMinute)['wrong-codes'];

const refusal = (): DomainError =>
  new DomainError('credential_invalid', {}, 'The code is wrong, was used before or has expired. Request a new one.');

/** The pepper is not in the database. Without it all codes could be tried against a database dump. */
const hash = ({ secret }: Pepper, ...parts: readonly string[]): Buffer =>
  createHmac('sha256', secret)
    .update(['otp', ...parts].join('\0'))
    .digest();

/**
 * The contact's hash under each pepper: with a new pepper the contact's earlier requests still count, and its requests
 * still take the same lock.
 */
const hashesOfContact = ({ config }: ApiDeps, { channel, address }: Contact): Buffer[] =>
  config.apiKeyPeppers.map((pepper) => hash(pepper, 'contact', channel, address));

/** Compares with all candidates, so that the time it takes does not show which one matches. */
const isOneOf = (candidates: readonly Buffer[], stored: Buffer): boolean =>
  candidates.reduce((found, candidate) => timingSafeEqual(candidate, stored) || found, false);
