/**
 * Encryption of what Temporal keeps (opt-in): inputs, results, memos and summaries. The first key seals, all of them
 * open, and what was written before encryption was switched on still reads. Ids, search attributes and failures are no
 * payloads and stay readable.
 */
import {
  ApplicationFailure,
  type DataConverter,
  METADATA_ENCODING_KEY,
  type Payload,
  type PayloadCodec,
} from '@temporalio/common';
import { z } from 'zod';
import type { Config, NamedKey } from '../config.ts';
import { createSealer } from '../db/seal.ts';

/** As other tools for Temporal write it. */
const ENCODING = 'binary/encrypted';
const KEY_ID = 'encryption-key-id';
const BINDING = 'temporal.payload';
/** What else stands where an id should be is not repeated. */
const KEY_ID_FORM = /^[\w-]{1,32}$/;

const Base64 = z.string().transform((text) => Buffer.from(text, 'base64'));
const Sealed = z.object({ metadata: z.record(z.string(), Base64), data: Base64 });

/** How payloads are written and read: the same for every client, worker and replay of a configuration. */
export const dataConverterOf = ({ payloadKeys }: Pick<Config, 'payloadKeys'>): DataConverter =>
  payloadKeys === undefined ? {} : { payloadCodecs: [createPayloadCodec(payloadKeys)] };

/**
 * Decoding throws an ApplicationFailure of type `payload_key_unknown` or `payload_altered` that names the key's id and
 * nothing of the contents. It is final for whoever reads; a worker's step is repeated by Temporal nevertheless, so that a
 * forgotten key stops a settlement only until it is there.
 */
export function createPayloadCodec(keys: readonly [NamedKey, ...NamedKey[]]): PayloadCodec {
  const [active] = keys;
  const sealer = createSealer(keys);
  const encode = (payload: Payload): Payload => ({
    metadata: { [METADATA_ENCODING_KEY]: Buffer.from(ENCODING), [KEY_ID]: Buffer.from(active.id) },
    data: Buffer.from(sealer.seal(plainOf(payload), BINDING)),
  });
  const decode = (payload: Payload): Payload => {
    if (textOf(payload.metadata?.[METADATA_ENCODING_KEY]) !== ENCODING) return payload;
    const keyId = textOf(payload.metadata?.[KEY_ID]);
    if (!keys.some(({ id }) => id === keyId))
      throw ApplicationFailure.nonRetryable(
        `There is no payload key ${KEY_ID_FORM.test(keyId) ? keyId : 'of that id'} here.`,
        'payload_key_unknown',
      );
    const sealed = textOf(payload.data);
    const opened = sealed.startsWith(`${keyId}.`) ? sealer.open(sealed, BINDING) : undefined;
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

const plainOf = ({ metadata, data }: Payload): string =>
  JSON.stringify({
    metadata: Object.fromEntries(Object.entries(metadata ?? {}).map(([name, value]) => [name, base64Of(value)])),
    data: base64Of(data),
  });

const base64Of = (bytes: Uint8Array | null | undefined): string => Buffer.from(bytes ?? []).toString('base64');
const textOf = (bytes: Uint8Array | null | undefined): string => Buffer.from(bytes ?? []).toString();
