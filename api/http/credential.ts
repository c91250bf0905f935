/**
 * Raw API keys (contract §3): `sk_<env>_<secret><check>`. The check characters let scanners tell a key offline,
 * and let us refuse a mistyped one without asking the database.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Pepper } from '../../config.ts';
import { API_KEY_ENVIRONMENT, type RuntimeEnvironment } from '../../domain/runtime.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const SECRET_DIGITS = 43;
const CHECK_DIGITS = 6;
export const KEY_PREFIX_LENGTH = 12;

const KEY = new RegExp(`^sk_(local|test|live)_[0-9A-Za-z]{${SECRET_DIGITS + CHECK_DIGITS}}$`);

function base62(value: bigint, digits: number): string {
  let text = '';
  for (let rest = value; text.length < digits; rest /= 62n) text = (BASE62[Number(rest % 62n)] ?? '') + text;
  return text;
}

const checkOf = (body: string): string => base62(BigInt(crc32(body)), CHECK_DIGITS);

/** A new raw key of 256 random bits; shown once, never stored. */
export function generateApiKey(runtime: RuntimeEnvironment): string {
  const body = `sk_${API_KEY_ENVIRONMENT[runtime]}_${base62(BigInt(`0x${randomBytes(32).toString('hex')}`), SECRET_DIGITS)}`;
  return body + checkOf(body);
}

/** Whether this could be a key of this environment; says nothing about whether it is one. */
export function isWellFormedApiKey(raw: string, runtime: RuntimeEnvironment): boolean {
  return (
    KEY.exec(raw)?.[1] === API_KEY_ENVIRONMENT[runtime] &&
    raw.slice(-CHECK_DIGITS) === checkOf(raw.slice(0, -CHECK_DIGITS))
  );
}

/** What is stored of a key: HMAC-SHA-256 under a pepper of the server's, so that a dump can be matched with nothing. */
export const hashApiKey = ({ secret }: Pepper, raw: string): Buffer =>
  createHmac('sha256', secret).update(raw).digest();
