/**
 * A recipient's own key (contract §4). It seals all personal data of the recipient, in whichever table: the row of the
 * recipient has the key, sealed by the service's keys. So a rotation of those seals only this key again, and erasing it
 * makes the data unreadable everywhere, permanently.
 */
import { createHmac, randomBytes } from 'node:crypto';
import type { Recipient } from '../domain/recipient.ts';
import type { Queryable } from './client.ts';
import { createSealer, type Sealer } from './seal.ts';

/** `dataKeySealed` is null once the recipient is erased. */
export type KeyOwner = Pick<Recipient, 'recipientId' | 'dataKeySealed'>;

/** The texts that it seals have the recipient's id as the id of their key. */
export type DataKey = Sealer & {
  /** A digest by which equal texts of this recipient are found. Without the key it cannot be found by trying texts. */
  digest(text: string, binding: string): Buffer;
};

/** What reads of personal data take: the sealer of the service opens data keys. */
export type ReadDeps<Db = Queryable> = { readonly db: Db; readonly sealer: Sealer };

const KEY_BYTES = 32;

/** What a sealed data key is bound to. It does not open for another recipient. */
export const dataKeyBinding = (recipientId: string): string => `recipient.data_key:${recipientId}`;

/** Makes the key of a new recipient, and seals it by the service's key. */
export function newDataKey(
  sealer: Sealer,
  recipientId: string,
): { readonly dataKey: DataKey; readonly dataKeySealed: string } {
  const key = randomBytes(KEY_BYTES);
  return { dataKey: dataKeyOf(recipientId, key), dataKeySealed: sealer.seal(key, dataKeyBinding(recipientId)) };
}

/**
 * Opens the key of a recipient.
 *
 * @returns undefined once the recipient is erased
 * @throws SealError when none of the service's keys opens it
 */
export function openDataKey(sealer: Sealer, { recipientId, dataKeySealed }: KeyOwner): DataKey | undefined {
  if (dataKeySealed === null) return undefined;
  return dataKeyOf(recipientId, sealer.open(dataKeySealed, dataKeyBinding(recipientId)));
}

/** As `openDataKey`, for rows that are read together: a key that several of them have is opened once. */
export function dataKeysOf(sealer: Sealer): (owner: KeyOwner) => DataKey | undefined {
  const opened = new Map<string, DataKey | undefined>();
  return (owner) => {
    const { recipientId, dataKeySealed } = owner;
    const known = `${recipientId} ${dataKeySealed}`;
    if (!opened.has(known)) opened.set(known, openDataKey(sealer, owner));
    return opened.get(known);
  };
}

const dataKeyOf = (recipientId: string, key: Buffer): DataKey => ({
  ...createSealer([{ id: recipientId, key }]),
  digest: (text, binding) => createHmac('sha256', digestKeyOf(key)).update(`${binding}\0${text}`).digest(),
});

/** Digests have a key of their own, so that no key has two uses. */
const digestKeyOf = (key: Buffer): Buffer => createHmac('sha256', key).update('digest').digest();

/** A subquery for a recipient's data key as stored. @param recipientId the expression that holds it */
export const dataKeySql = (recipientId: string): string =>
  `(SELECT owner.data_key_sealed FROM recipients owner WHERE owner.recipient_id = ${recipientId})`;
