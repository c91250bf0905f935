/**
 * Encryption of the payloads that Temporal stores: inputs, results, memos and summaries. It is opt-in. The first key
 * encrypts, and every key decrypts. Payloads from before the encryption stay readable. Ids, search attributes and
 * failures are not payloads, and are not encrypted.
 */
import {
  ApplicationFailure,
  type DataConverter,
  METADATA_ENCODING_KEY,
  type Payload,
  type PayloadCodec,
} from '@temporalio/common';
import { z } from 'zod';
import type { NamedKey } from '../config/environment.ts';
import type { Config } from '../config/load.ts';
import { createSealer } from '../db/seal.ts';

/** The name that other tools for Temporal use for this encoding. */
const ENCODING = 'binary/encrypted';
const KEY_ID = 'encryption-key-id';
const BINDING = 'temporal.payload';
/** The form of a key id. A failure never contains any other text found in its place. */
const KEY_ID_FORM = /^[\w-]{1,32}$/;

const Base64 = z.string().transform((text) => Buffer.from(text, 'base64'));
const Sealed = z.object({ metadata: z.record(z.string(), Base64), data: Base64 });

/** The type of the failure to decode a payload whose key is not configured. */
export const PAYLOAD_KEY_UNKNOWN = 'payload_key_unknown';

/** How payloads are encoded and decoded: the same for every client, worker and replay of a configuration. */
export const dataConverterOf = ({ payloadKeys }: Pick<Config, 'payloadKeys'>): DataConverter =>
  payloadKeys === undefined ? {} : { payloadCodecs: [createPayloadCodec(payloadKeys)] };

/**
 * Decoding throws an ApplicationFailure of type `payload_key_unknown` or `payload_altered`, which names the key's id
 * and nothing of the contents. A client that reads gets this failure. A worker's task is repeated by Temporal, so a
 * missing key stops a settlement only until the key is configured.
 */
export function createPayloadCodec(keys: readonly [NamedKey, ...NamedKey[]]): PayloadCodec {
  const [active] = keys;
  const sealer = createSealer(keys);
  const encode = (payload: Payload): Payload => ({
    metadata: { [METADATA_ENCODING_KEY]: Buffer.from(ENCODING), [KEY_ID]: Buffer.from(active.id) },
    data: Buffer.from(sealer.seal(plaintextOf(payload), BINDING)),
  });
  const decode = (payload: Payload): Payload => {
    if (textOf(payload.metadata?.[METADATA_ENCODING_KEY]) !== ENCODING) return payload;
    const keyId = textOf(payload.metadata?.[KEY_ID]);
    if (!keys.some(({ id }) => id === keyId))
      throw ApplicationFailure.nonRetryable(
        `There is no payload key ${KEY_ID_FORM.test(keyId) ? keyId : 'of that id'} here.`,
        PAYLOAD_KEY_UNKNOWN,
      );
    const sealed = textOf(payload.data);
    const opened = sealed.startsWith(`${keyId}.`) ? sealer.tryOpen(sealed, BINDING) : undefined;
    if (!opened)
      throw ApplicationFailure.nonRetryable(
        `A payload of key ${keyId} was altered, or sealed by another key of that id.`,
        'payload_altered',
      );
    return Sealed.parse(JSON.parse(opened.toString()));
  };
  return {
    encode: async (payloads) => payloads.map(encode),
    decode: async (payloads) => payloads.map(decode),
  };
}

const plaintextOf = ({ metadata, data }: Payload): string =>
  JSON.stringify({
    metadata: Object.fromEntries(Object.entries(metadata ?? {}).map(([name, value]) => [name, base64Of(value)])),
    data: base64Of(data),
  });

const base64Of = (bytes: Uint8Array | null | undefined): string => Buffer.from(bytes ?? []).toString('base64');
const textOf = (bytes: Uint8Array | null | undefined): string => Buffer.from(bytes ?? []).toString();
