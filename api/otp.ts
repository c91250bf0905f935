/**
 * The consumer's sign-in (contract §12). Asking for a code does the same work and answers alike for every contact:
 * nothing looks up who it is before a code was proved. The code leaves by the outbox, so that no answer waits for mail.
 */
import { createHmac, randomInt, timingSafeEqual } from 'node:crypto';
import type { Pepper } from '../config.ts';
import { newId } from '../db/id.ts';
import { findOrInsertConsumer, insertSession } from '../db/queries/consumer.ts';
import {
  consumeChallenge,
  countChallenges,
  countTry,
  forgetChallenges,
  insertChallenge,
  lockContact,
} from '../db/queries/otp.ts';
import { enqueue } from '../db/queries/outbox.ts';
import { type ConsumerSession, SESSION_VALIDITY_MS } from '../domain/consumer.ts';
import { DomainError } from '../domain/error.ts';
import { type Contact, OTP_LIMITS, type OtpChallenge, otpBinding } from '../domain/otp.ts';
import { otpMessage } from '../domain/outbox.ts';
import { environmentName, isRemote } from '../domain/runtime.ts';
import type { ApiDeps } from './deps.ts';
import { generateSessionToken, hashSessionToken } from './http/session-token.ts';

export type OtpRequest =
  | { readonly challengeId: string; readonly expiresAt: Date; readonly code: string }
  | { readonly retryAfterSeconds: number };

/**
 * Makes a code for a contact and has it sent where there is a sender.
 *
 * @returns the challenge, or after how many seconds the contact may be sent another code
 * @throws DomainError `provider_not_configured`
 */
export async function requestOtp(deps: ApiDeps, contact: Contact, requestId: string): Promise<OtpRequest> {
  const mailed = contact.channel === 'email' && deps.config.smtpUrl !== undefined;
  if (!mailed && isRemote(deps.runtime)) throw new DomainError('provider_not_configured');
  const at = deps.now();
  const { challenge, code } = newChallenge(deps, contact, mailed, at);
  const contactHashes = hashesOfContact(deps, contact);
  const windowStart = new Date(at.getTime() - OTP_LIMITS.requestWindowMs);
  const firstAt = await deps.db.transaction(async (tx) => {
    await lockContact(tx, contactHashes);
    const before = await countChallenges(tx, contactHashes, windowStart);
    if (before.requests >= OTP_LIMITS.requestsMax) return before.firstAt;
    await forgetChallenges(tx, windowStart);
    await insertChallenge(tx, challenge);
    if (mailed) await enqueue(tx, otpMessage(challenge.challengeId, requestId));
    return null;
  });
  if (firstAt !== null)
    return { retryAfterSeconds: Math.max(1, Math.ceil((firstAt.getTime() - windowStart.getTime()) / 1_000)) };
  deps.dispatcher.nudge();
  return { challengeId: challenge.challengeId, expiresAt: challenge.expiresAt, code };
}

function newChallenge(
  deps: ApiDeps,
  contact: Contact,
  mailed: boolean,
  at: Date,
): { readonly challenge: OtpChallenge; readonly code: string } {
  const challengeId = newId();
  const [pepper] = deps.config.apiKeyPeppers;
  const code = String(randomInt(10 ** OTP_LIMITS.codeDigits)).padStart(OTP_LIMITS.codeDigits, '0');
  const challenge = {
    challengeId,
    channel: contact.channel,
    contactHash: hash(pepper, 'contact', contact.channel, contact.address),
    contactSealed: deps.sealer.seal(contact.address, otpBinding('contact', challengeId)),
    codeHash: hash(pepper, 'code', challengeId, code),
    codeSealed: mailed ? deps.sealer.seal(code, otpBinding('code', challengeId)) : null,
    attempts: 0,
    createdAt: at,
    expiresAt: new Date(at.getTime() + OTP_LIMITS.validityMs),
    consumedAt: null,
  };
  return { challenge, code };
}

export type OpenedSession = { readonly token: string; readonly session: ConsumerSession };

/**
 * Opens a session for whoever proves a code. The try is counted and committed before the code is compared.
 *
 * @throws DomainError `credential_invalid`, the same for a code that is unknown, wrong, used, expired or tried too
 *   often
 */
export async function verifyOtp(deps: ApiDeps, challengeId: string, code: string): Promise<OpenedSession> {
  const at = deps.now();
  const challenge = await countTry(deps.db, challengeId, at);
  const given = deps.config.apiKeyPeppers.map((pepper) => hash(pepper, 'code', challengeId, code));
  if (!challenge || !isOneOf(given, challenge.codeHash)) throw refusal();
  const address = deps.sealer.open(challenge.contactSealed, otpBinding('contact', challengeId))?.toString();
  if (address === undefined)
    throw new Error(`the contact of challenge ${challengeId} was sealed by a key that is gone`);
  const contact: Contact = { channel: challenge.channel, address };
  const token = generateSessionToken();
  const session = await deps.db.transaction(async (tx) => {
    await lockContact(tx, hashesOfContact(deps, contact));
    if (!(await consumeChallenge(tx, challengeId, at))) throw refusal();
    const { consumerId } = await findOrInsertConsumer(tx, contact, environmentName(deps.runtime), at);
    const opened: ConsumerSession = {
      sessionId: newId(),
      consumerId,
      createdAt: at,
      expiresAt: new Date(at.getTime() + SESSION_VALIDITY_MS),
    };
    await insertSession(tx, opened, hashSessionToken(deps.config.apiKeyPeppers[0], token));
    return opened;
  });
  return { token, session };
}

const refusal = (): DomainError =>
  new DomainError(
    'credential_invalid',
    {},
    'The code does not fit this challenge, was used, or is not valid any more. Ask for a new one.',
  );

/** Under the pepper, which the database does not know: a million codes are soon tried without it. */
const hash = ({ secret }: Pepper, ...parts: readonly string[]): Buffer =>
  createHmac('sha256', secret)
    .update(['otp', ...parts].join('\0'))
    .digest();

/** One for each pepper, so that a new pepper neither hides a contact's earlier requests nor lets two of them race. */
const hashesOfContact = ({ config }: ApiDeps, { channel, address }: Contact): Buffer[] =>
  config.apiKeyPeppers.map((pepper) => hash(pepper, 'contact', channel, address));

/** Compares with every candidate, whichever fits. */
const isOneOf = (candidates: readonly Buffer[], stored: Buffer): boolean =>
  candidates.reduce((found, candidate) => timingSafeEqual(candidate, stored) || found, false);
