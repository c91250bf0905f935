/**
 * One key, one command, one answer (contract §6), for every operation that takes a key: what was answered first is
 * kept as bytes and answered again for ever. A refusal binds nothing.
 */
import type { Queryable, Tx } from '../db/client.ts';
import {
  type BoundKey,
  bindIdempotencyKey,
  type CommandFingerprint,
  findIdempotencyKey,
  mismatchOf,
} from '../db/queries/idempotency-key.ts';
import { DomainError } from '../domain/error.ts';

export type KeyedCommand = {
  readonly orgId: string;
  readonly idempotencyKey: string;
  readonly fingerprint: CommandFingerprint;
};

export type CommandAnswer = {
  readonly resourceId: string;
  readonly status: number;
  readonly body: Buffer;
  readonly replayed: boolean;
};

/**
 * How the key's first use was answered; undefined while it is free.
 *
 * @throws DomainError `idempotency_key_reused` when it is bound to another command
 */
export async function findAnswer(db: Queryable, command: KeyedCommand): Promise<CommandAnswer | undefined> {
  const bound = await findIdempotencyKey(db, command.orgId, command.idempotencyKey);
  return bound && replay(bound, command.fingerprint);
}

/**
 * Binds the key to this answer in the transaction that makes it true. Where another request with the key committed
 * meanwhile, its answer is returned as a replay, and the caller is to write nothing.
 *
 * @throws DomainError `idempotency_key_reused`
 */
export async function bindAnswer(
  tx: Tx,
  command: KeyedCommand,
  answer: Omit<CommandAnswer, 'replayed'>,
  createdAt: Date,
): Promise<CommandAnswer> {
  const first = await bindIdempotencyKey(tx, {
    orgId: command.orgId,
    key: command.idempotencyKey,
    ...command.fingerprint,
    resourceId: answer.resourceId,
    responseStatus: answer.status,
    responseBody: answer.body,
    createdAt,
  });
  if (first) return { ...answer, replayed: false };
  const winner = await findAnswer(tx, command);
  if (!winner) throw new Error(`the idempotency key of ${answer.resourceId} was neither bound nor found`);
  return winner;
}

function replay(bound: BoundKey, fingerprint: CommandFingerprint): CommandAnswer {
  if (!bound.requestHash.equals(fingerprint.requestHash))
    throw new DomainError('idempotency_key_reused', { mismatch: mismatchOf(bound, fingerprint) });
  return { resourceId: bound.resourceId, status: bound.responseStatus, body: bound.responseBody, replayed: true };
}
