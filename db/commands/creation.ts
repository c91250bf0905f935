/**
 * Commands that create something and may have an idempotency key (contract §1, §6). The key is locked first, so that a
 * second request with it waits, finds the first one's answer, and creates nothing.
 */
import type { Transaction } from '../../domain/crash-point.ts';
import { DomainError } from '../../domain/error.ts';
import type { Tx } from '../client.ts';
import { type KeyOwner, openDataKey } from '../data-key.ts';
import { type Answer, bindAnswer, findAnswer, type KeyedRequest, lockKey } from '../queries/idempotency-key.ts';
import { findSecretAnswer, insertSecretAnswer, SECRET_ANSWER_HOURS } from '../queries/idempotency-secret.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';

export type CreationDeps = CommitDeps & Pick<CommandDeps, 'sealer' | 'now'>;

/** How the route of a creation answers. */
export type Creation<Created> = {
  /** Undefined for a request without a key. */
  readonly keyed: KeyedRequest | undefined;
  readonly status: number;
  /** Why a new request is refused, by what the route knows. A key that is bound is answered nevertheless. */
  readonly refusal?: Error | undefined;
  /** The body of the answer. */
  show(created: Created): Readonly<Record<string, unknown>>;
};

/** A creation as a command declares it. */
type Declared<Created> = Creation<Created> & {
  readonly name: Transaction;
  /** The answer shows a secret once, so it is stored sealed, and for a limited time. */
  readonly hasSecret?: boolean;
  /** Throws when the caller may not be shown what the key's first use was answered. */
  readonly admitReplay?: ((tx: Tx, resourceId: string) => Promise<void>) | undefined;
};

/**
 * Creates something in one transaction, or answers as the key's first use was answered.
 *
 * @param create returns what was created, its id, and whose personal data the request or the answer has
 * @throws DomainError `idempotency_key_reused`, and whatever `create` and `admitReplay` throw; none binds the key
 */
export async function commitCreation<Created>(
  deps: CreationDeps,
  declared: Declared<Created>,
  create: (tx: Tx) => Promise<{ readonly id: string; readonly created: Created; readonly about?: KeyOwner }>,
): Promise<Answer> {
  const { name, keyed, status } = declared;
  return await commit(deps, name, async (tx) => {
    const answered = keyed && (await findFirstAnswer(deps, tx, { keyed, hasSecret: declared.hasSecret }));
    if (answered) {
      await declared.admitReplay?.(tx, answered.resourceId);
      return answered;
    }
    if (declared.refusal) throw declared.refusal;
    const { id: resourceId, created, about } = await create(tx);
    const answer = { resourceId, status, body: Buffer.from(JSON.stringify(declared.show(created))) };
    if (keyed) await bindFirstAnswer(deps, tx, { keyed, hasSecret: declared.hasSecret, answer, about });
    return { ...answer, replayed: false };
  });
}

type KeyedCreation = { readonly keyed: KeyedRequest; readonly hasSecret?: boolean | undefined };

/** @throws DomainError `idempotency_key_reused`, also when the answer showed a secret that is no longer kept */
export async function findFirstAnswer(
  { sealer, now }: Pick<CreationDeps, 'sealer' | 'now'>,
  tx: Tx,
  { keyed, hasSecret = false }: KeyedCreation,
): Promise<Answer | undefined> {
  await lockKey(tx, keyed);
  const answer = await findAnswer({ db: tx, sealer }, keyed);
  if (!answer || !hasSecret) return answer;
  const body = await findSecretAnswer(tx, sealer, keyed, now());
  if (body) return { ...answer, body };
  throw new DomainError(
    'idempotency_key_reused',
    { mismatch: [] },
    `The answer to this key showed a secret, which is repeated for ${SECRET_ANSWER_HOURS} hours only. The object exists.`,
  );
}

/** Binds a key that `findFirstAnswer` has locked. A secret answer is stored sealed, in a row of its own. */
async function bindFirstAnswer(
  { sealer, now }: Pick<CreationDeps, 'sealer' | 'now'>,
  tx: Tx,
  {
    keyed,
    hasSecret = false,
    answer,
    about,
  }: KeyedCreation & { readonly answer: Omit<Answer, 'replayed'>; readonly about?: KeyOwner | undefined },
): Promise<void> {
  const at = now();
  const dataKey = about && openDataKey(sealer, about);
  await bindAnswer({ db: tx, sealer }, keyed, hasSecret ? { ...answer, body: Buffer.alloc(0) } : answer, {
    at,
    about: about && dataKey && { recipientId: about.recipientId, dataKey },
  });
  if (hasSecret) await insertSecretAnswer(tx, sealer, keyed, { body: answer.body, at });
}
