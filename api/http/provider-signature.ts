/**
 * Signatures of inbound provider webhooks (contract §9), verified over the exact bytes, in constant time, before
 * anything is parsed. While a secret is being rotated, a signature by any of the configured secrets is valid.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { DomainError } from '../../domain/error.ts';
import { headerLines } from './header-lines.ts';

const TOLERANCE_SECONDS = 300;
const SIGNATURES_MAX = 8;
const HEX_DIGEST = /^[0-9a-f]{64}$/;

const invalid = () => new DomainError('signature_invalid');

/** The value of a header that must be sent exactly once. @throws DomainError `signature_invalid` */
export function singleHeader(raw: IncomingMessage, name: string): string {
  const [value, ...more] = headerLines(raw, name);
  if (value === undefined || more.length > 0) throw invalid();
  return value;
}

/** What a signature's header says. Its digests are compared once the body is there. */
export type ReadSignature = {
  /** Comes before the body in what is signed. */
  readonly prefix: string;
  readonly digests: readonly string[];
};

/**
 * `t=<unix>,v1=<hex>` over `<t>.<body>`. Several `v1` are allowed; the time may differ by 300 s in both directions.
 *
 * @throws DomainError `signature_invalid`
 */
export function readTimestamped(header: string, now: Date): ReadSignature {
  const parts = header.split(',').map((part) => part.trim().split('='));
  const valuesOf = (wanted: string) => parts.filter(([name]) => name === wanted).map(([, value = '']) => value);
  const [timestamp, ...moreTimestamps] = valuesOf('t');
  if (timestamp === undefined || moreTimestamps.length > 0 || !/^[0-9]{1,12}$/.test(timestamp)) throw invalid();
  if (Math.abs(now.getTime() / 1_000 - Number(timestamp)) > TOLERANCE_SECONDS) throw invalid();
  const signatures = valuesOf('v1');
  if (signatures.length > SIGNATURES_MAX) throw invalid();
  return { prefix: `${timestamp}.`, digests: wellFormed(signatures) };
}

/**
 * A bare hex HMAC-SHA256 of the body.
 *
 * @throws DomainError `signature_invalid`
 */
export const readDigest = (header: string): ReadSignature => ({ prefix: '', digests: wellFormed([header]) });

function wellFormed(signatures: readonly string[]): readonly string[] {
  const digests = signatures.filter((signature) => HEX_DIGEST.test(signature));
  if (digests.length === 0) throw invalid();
  return digests;
}

/** @throws DomainError `signature_invalid` */
export function requireMatch({ prefix, digests }: ReadSignature, bytes: Buffer, secrets: readonly string[]): void {
  const expected = secrets.map((secret) => createHmac('sha256', secret).update(prefix).update(bytes).digest());
  const given = digests.map((digest) => Buffer.from(digest, 'hex'));
  // Every pair is compared, so that the time it takes does not show which one matched.
  const matches = expected.flatMap((digest) => given.map((candidate) => timingSafeEqual(digest, candidate)));
  if (!matches.includes(true)) throw invalid();
}
