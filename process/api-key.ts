/**
 * Raw API keys (contract §3): `sk_<env>_<secret><check>`. With the check characters a secret scanner recognizes a key
 * offline, and a mistyped key is refused without a query. The raw key is shown once; only its hash is stored.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Pepper } from '../config/environment.ts';
import type { Config } from '../config/load.ts';
import { newId } from '../db/id.ts';
import type { ApiKeyCredential } from '../db/queries/api-key.ts';
import { KEY_PREFIX_LENGTH } from '../domain/api-key.ts';
import { API_KEY_ENVIRONMENT, environmentName, type RuntimeEnvironment } from '../domain/runtime.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const SECRET_BYTES = 32;
const SECRET_DIGITS = 43;
const CHECK_DIGITS = 6;

const KEY = new RegExp(`^sk_(local|test|live)_[0-9A-Za-z]{${SECRET_DIGITS + CHECK_DIGITS}}$`);

/** Makes a key of this runtime's environment: the raw key for its owner, and the credential to store. */
export function issueApiKey({
  runtime,
  config,
}: {
  readonly runtime: RuntimeEnvironment;
  readonly config: Pick<Config, 'apiKeyPeppers'>;
}): {
  readonly apiKey: string;
  readonly credential: ApiKeyCredential;
} {
  const apiKey = generateApiKey(runtime);
  const [pepper] = config.apiKeyPeppers;
  return {
    apiKey,
    credential: {
      keyId: newId(),
      environment: environmentName(runtime),
      prefix: apiKey.slice(0, KEY_PREFIX_LENGTH),
      keyHash: hashApiKey(pepper, apiKey),
      pepperId: pepper.id,
    },
  };
}

/** A new raw key with 256 random bits. */
export function generateApiKey(runtime: RuntimeEnvironment): string {
  const secret = base62(BigInt(`0x${randomBytes(SECRET_BYTES).toString('hex')}`), SECRET_DIGITS);
  const body = `sk_${API_KEY_ENVIRONMENT[runtime]}_${secret}`;
  return body + checkOf(body);
}

/** Whether the text has the form of a key of this environment; whether the key exists only the database knows. */
export function isWellFormedApiKey(raw: string, runtime: RuntimeEnvironment): boolean {
  return (
    KEY.exec(raw)?.[1] === API_KEY_ENVIRONMENT[runtime] &&
    raw.slice(-CHECK_DIGITS) === checkOf(raw.slice(0, -CHECK_DIGITS))
  );
}

/**
 * The stored hash of a key: HMAC-SHA-256 under the server's pepper, so that a database dump alone cannot be matched.
 */
export const hashApiKey = ({ secret }: Pepper, raw: string): Buffer =>
  createHmac('sha256', secret).update(raw).digest();

const checkOf = (body: string): string => base62(BigInt(crc32(body)), CHECK_DIGITS);

function base62(value: bigint, digits: number): string {
  let text = '';
  for (let rest = value; text.length < digits; rest /= 62n) text = (BASE62[Number(rest % 62n)] ?? '') + text;
  return text;
}
