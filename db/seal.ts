/**
 * Encryption at rest: AES-256-GCM with the key's id before the ciphertext (contract §4). A sealed text is bound to its
 * purpose and owner and does not open for another one. The first key seals; every key opens what it sealed.
 */
import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';

export type SealingKey = { readonly id: string; readonly key: Buffer };
type PreparedKey = { readonly id: string; readonly key: KeyObject };

export type Sealer = {
  /** @param binding purpose and owner, such as `recipient.account_number:<recipient id>` */
  seal(plain: string | Buffer, binding: string): string;
  /**
   * Opens what the service has sealed and stored.
   *
   * @throws SealError when the text was not sealed by one of these keys for this binding
   */
  open(sealed: string, binding: string): Buffer;
  /** As `open`, for a text that a caller presents: undefined when it is not one of ours. */
  tryOpen(sealed: string, binding: string): Buffer | undefined;
};

/**
 * A stored text cannot be opened: its key is not configured in this process, or the text was altered. It must never be
 * taken for an absent value. Another process may have the key, so activities retry.
 */
export class SealError extends Error {
  readonly code = 'SEALED_TEXT_UNREADABLE';

  constructor(binding: string) {
    super(`${binding} cannot be opened by a configured encryption key`);
    this.name = 'SealError';
  }
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** @param keys the first one seals; every one of them opens what it sealed */
export function createSealer(keys: readonly [SealingKey, ...SealingKey[]]): Sealer {
  // Given as bytes, a key costs Node.js 24 four times as much at each call.
  const prepared = ({ id, key }: SealingKey): PreparedKey => ({ id, key: createSecretKey(key) });
  const [first, ...others] = keys;
  const active = prepared(first);
  const all = [active, ...others.map(prepared)];
  const tryOpen = (sealed: string, binding: string): Buffer | undefined => openBy(all, sealed, binding);
  return {
    tryOpen,
    open(sealed, binding) {
      const plain = tryOpen(sealed, binding);
      if (plain === undefined) throw new SealError(binding);
      return plain;
    },
    seal(plain, binding) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', active.key, nonce).setAAD(Buffer.from(`${active.id}\0${binding}`));
      const body = Buffer.concat([cipher.update(plain), cipher.final()]);
      return `${active.id}.${Buffer.concat([nonce, body, cipher.getAuthTag()]).toString('base64url')}`;
    },
  };
}

function openBy(keys: readonly PreparedKey[], sealed: string, binding: string): Buffer | undefined {
  const [id, encoded = '', ...more] = sealed.split('.');
  const found = keys.find((candidate) => candidate.id === id);
  const packed = Buffer.from(encoded, 'base64url');
  // Decoding ignores invalid characters and spare bits, so another text could decode to the same bytes: it is
  // refused.
  const altered = more.length > 0 || packed.toString('base64url') !== encoded;
  if (!found || altered || packed.length < NONCE_BYTES + TAG_BYTES) return undefined;
  const decipher = createDecipheriv('aes-256-gcm', found.key, packed.subarray(0, NONCE_BYTES))
    .setAAD(Buffer.from(`${found.id}\0${binding}`))
    .setAuthTag(packed.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(packed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch {
    return undefined;
  }
}
