/**
 * Session tokens of consumers (contract §12): opaque, 256 random bits. A token is shown once; only its hash is stored.
 */
import { createHmac, randomBytes } from 'node:crypto';
import type { Pepper } from '../../config/environment.ts';

const SECRET_BYTES = 32;
const BEARER = /^Bearer +(cst_[A-Za-z0-9_-]{43})$/i;

export const generateSessionToken = (): string => `cst_${randomBytes(SECRET_BYTES).toString('base64url')}`;

/** The token in an `Authorization` header; undefined for every other scheme or form. */
export const bearerToken = (header: string): string | undefined => BEARER.exec(header)?.[1];

/** HMAC-SHA-256 under the server's pepper; `session` keeps it apart from the hashes of keys and codes. */
export const hashSessionToken = ({ secret }: Pepper, token: string): Buffer =>
  createHmac('sha256', secret).update(`session\0${token}`).digest();
