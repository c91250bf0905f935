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
import type { Counted } from '../../domain/rate-limit.ts';
import { environmentName } from '../../domain/runtime.ts';
import type { Tx } from '../client.ts';
import { newId } from '../id.ts';
import { findConsumer, insertConsumer, insertSession } from '../queries/consumer.ts';
import { insertOrganization } from '../queries/organization.ts';
import { consumeChallenge, countChallenges, countTry, insertChallenge, lockContact } from '../queries/otp.ts';
import { enqueue } from '../queries/outbox.ts';
import { type Charge, charge, release } from '../queries/rate-limit.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';

export type ChallengeRequest = {
  readonly challenge: OtpChallenge;
  /** The contact's hash under each pepper; the challenge has the first one. */
  readonly contactHashes: readonly Buffer[];
  /** What the code costs the address that asks for it, until it is proved. */
  readonly price: Charge;
  /** Whether the code is sent by mail. */
  readonly mailed: boolean;
  readonly requestId: string;
};

type StoredChallenge = { readonly nextCodeAt: Date } | { readonly counted: Counted };

/**
 * Stores a challenge and sends its code, unless the contact has been sent its codes of the hour, or the price is more
 * than what is left to the address.
 *
 * @returns `nextCodeAt`: the contact has been sent its codes, and may be sent another one from then on; or `counted`:
 *   what the address has used, which is over the quota when nothing was stored
 */
export async function storeChallenge(deps: CommitDeps, request: ChallengeRequest): Promise<StoredChallenge> {
  const { challenge, contactHashes, price, mailed, requestId } = request;
  const windowStart = new Date(challenge.createdAt.getTime() - OTP_LIMITS.requestWindowMs);
  return await commit(deps, 'otp.request', async (tx) => {
    await lockContact(tx, contactHashes);
    const { requests, firstAt } = await countChallenges(tx, contactHashes, windowStart);
    if (requests >= OTP_LIMITS.requestsMax && firstAt !== null)
      return { nextCodeAt: new Date(firstAt.getTime() + OTP_LIMITS.requestWindowMs) };
    const counted = await charge(tx, price);
    if (counted.used > price.budget.quota) return { counted };
    await insertChallenge(tx, challenge);
    if (mailed) await enqueue(tx, otpMessage(challenge.challengeId, requestId));
    return { counted };
  });
}

export type ProvedContact = {
  readonly contact: Contact;
  readonly contactHashes: readonly Buffer[];
  readonly consumerHashes: ConsumerHashes;
  readonly tokenHash: Buffer;
};

/** The hashes by which a consumer with the contact is found, one for each pepper; the first one is stored. */
type ConsumerHashes = readonly [ContactHash, ...ContactHash[]];

export type SignIn = {
  readonly challengeId: string;
  /** What the code cost, and the address that gets it back. */
  readonly price: Charge;
  /** @returns undefined when the given code is not the challenge's */
  prove(challenge: OtpChallenge): ProvedContact | undefined;
};

/**
 * Counts a try. If it proves the challenge's code, uses the challenge up and opens a session; at the first sign-in it
 * creates the consumer. That is one transaction: a right code whose session could not be opened can be sent again.
 *
 * @returns undefined when the code is wrong, was used before, has expired, or was tried too often
 */
export async function openSession(
  deps: CommitDeps & Pick<CommandDeps, 'sealer' | 'runtime' | 'now'>,
  { challengeId, price, prove }: SignIn,
): Promise<ConsumerSession | undefined> {
  const at = deps.now();
  return await commit(deps, 'session.open', async (tx) => {
    const challenge = await countTry(tx, challengeId, at);
    const proved = challenge && prove(challenge);
    if (!proved) return undefined;
    const { contact, contactHashes, consumerHashes, tokenHash } = proved;
    await lockContact(tx, contactHashes);
    await consumeChallenge(tx, challengeId, at);
    const { consumerId } = await findOrCreateConsumer(deps, tx, { contact, hashes: consumerHashes, at });
    const expiresAt = new Date(at.getTime() + SESSION_VALIDITY_MS);
    const session: ConsumerSession = { sessionId: newId(), consumerId, createdAt: at, expiresAt };
    await insertSession(tx, session, tokenHash);
    await release(tx, price, challenge.createdAt);
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
