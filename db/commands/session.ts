/**
 * Consumers' sign-in (contract §12): asking for a one-time code, and opening a session with it. Both lock the contact,
 * so that its requests are counted exactly and it never gets two consumers.
 */
import {
  type Consumer,
  type ConsumerSession,
  type ContactHash,
  consumerContactBinding,
  consumerOrganization,
  SESSION_VALIDITY_MS,
} from '../../domain/consumer.ts';
import { type Contact, OTP_LIMITS, type OtpChallenge } from '../../domain/otp.ts';
import { otpMessage } from '../../domain/outbox.ts';
import { environmentName } from '../../domain/runtime.ts';
import type { Tx } from '../client.ts';
import { newId } from '../id.ts';
import { findConsumer, insertConsumer, insertSession } from '../queries/consumer.ts';
import { insertOrganization } from '../queries/organization.ts';
import {
  consumeChallenge,
  countChallenges,
  deleteOldChallenges,
  insertChallenge,
  lockContact,
} from '../queries/otp.ts';
import { enqueue } from '../queries/outbox.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';

export type ChallengeRequest = {
  readonly challenge: OtpChallenge;
  /** The contact's hash under each pepper; the challenge has the first one. */
  readonly contactHashes: readonly Buffer[];
  /** How many codes the contact may be sent in an hour. */
  readonly requestsMax: number;
  /** Whether the code is sent by mail. */
  readonly mailed: boolean;
  readonly requestId: string;
};

/**
 * Stores a challenge and sends its code, unless the contact has reached its limit of codes.
 *
 * @returns undefined when it is stored; otherwise the time from which the contact may be sent another code
 */
export async function storeChallenge(deps: CommitDeps, request: ChallengeRequest): Promise<Date | undefined> {
  const { challenge, contactHashes, requestsMax, mailed, requestId } = request;
  const windowStart = new Date(challenge.createdAt.getTime() - OTP_LIMITS.requestWindowMs);
  return await commit(deps, 'otp.request', async (tx) => {
    await lockContact(tx, contactHashes);
    const { requests, firstAt, lastAt } = await countChallenges(tx, contactHashes, windowStart);
    const blockingAt = requestsMax === OTP_LIMITS.requestsMax ? firstAt : lastAt;
    if (requests >= requestsMax && blockingAt !== null)
      return new Date(blockingAt.getTime() + OTP_LIMITS.requestWindowMs);
    await deleteOldChallenges(tx, windowStart);
    await insertChallenge(tx, challenge);
    if (mailed) await enqueue(tx, otpMessage(challenge.challengeId, requestId));
    return undefined;
  });
}

export type ProvedContact = {
  readonly challengeId: string;
  readonly contact: Contact;
  readonly contactHashes: readonly Buffer[];
  readonly consumerHashes: ConsumerHashes;
  readonly tokenHash: Buffer;
};

/** The hashes by which a consumer with the contact is found, one for each pepper; the first one is stored. */
type ConsumerHashes = readonly [ContactHash, ...ContactHash[]];

/**
 * Uses up a challenge whose code was proved, and opens a session. At the first sign-in it creates the consumer.
 *
 * @returns undefined when the challenge was used before
 */
export async function openSession(
  deps: CommitDeps & Pick<CommandDeps, 'sealer' | 'runtime' | 'now'>,
  { challengeId, contact, contactHashes, consumerHashes, tokenHash }: ProvedContact,
): Promise<ConsumerSession | undefined> {
  const at = deps.now();
  return await commit(deps, 'session.open', async (tx) => {
    await lockContact(tx, contactHashes);
    if (!(await consumeChallenge(tx, challengeId, at))) return undefined;
    const { consumerId } = await findOrCreateConsumer(deps, tx, { contact, hashes: consumerHashes, at });
    const expiresAt = new Date(at.getTime() + SESSION_VALIDITY_MS);
    const session: ConsumerSession = { sessionId: newId(), consumerId, createdAt: at, expiresAt };
    await insertSession(tx, session, tokenHash);
    return session;
  });
}

/** The consumer with this contact, which is locked; a new one has an organization of its own. */
export async function findOrCreateConsumer(
  { sealer, runtime }: Pick<CommandDeps, 'sealer' | 'runtime'>,
  tx: Tx,
  { contact, hashes, at }: { readonly contact: Contact; readonly hashes: ConsumerHashes; readonly at: Date },
): Promise<Consumer> {
  const environment = environmentName(runtime);
  const known = await findConsumer(tx, hashes, environment);
  if (known) return known;
  const consumerId = newId();
  const consumer: Consumer = {
    consumerId,
    channel: contact.channel,
    contactSealed: sealer.seal(contact.address, consumerContactBinding(consumerId)),
    environment,
    createdAt: at,
  };
  await insertOrganization(tx, consumerOrganization(consumer));
  await insertConsumer(tx, consumer, hashes[0]);
  return consumer;
}
