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

/**
 * `t=<unix>,v1=<hex>` over `<t>.<body>`. Several `v1` are allowed; the time may differ by 300 s in both directions.
 *
 * @throws DomainError `signature_invalid`
 */
export function verifyTimestamped(header: string, bytes: Buffer, secrets: readonly string[], now: Date): void {
  const parts = header.split(',').map((part) => part.trim().split('='));
  const [timestamp, ...moreTimestamps] = parts.filter(([name]) => name === 't').map(([, value = '']) => value);
  const signatures = parts.filter(([name]) => name === 'v1').map(([, value = '']) => value);
  if (
    timestamp === undefined ||
    moreTimestamps.length > 0 ||
    !/^[0-9]{1,12}$/.test(timestamp) ||
    signatures.length > SIGNATURES_MAX
  )
    throw invalid();
  if (Math.abs(now.getTime() / 1_000 - Number(timestamp)) > TOLERANCE_SECONDS) throw invalid();
  requireMatch(signatures, Buffer.concat([Buffer.from(`${timestamp}.`), bytes]), secrets);
}

/**
 * A bare hex HMAC-SHA256 of the body.
 *
 * @throws DomainError `signature_invalid`
 */
export function verifyDigest(header: string, bytes: Buffer, secrets: readonly string[]): void {
  requireMatch([header], bytes, secrets);
}

function requireMatch(signatures: readonly string[], signed: Buffer, secrets: readonly string[]): void {
  const expected = secrets.map((secret) => createHmac('sha256', secret).update(signed).digest());
  const given = signatures
    .filter((signature) => HEX_DIGEST.test(signature))
    .map((signature) => Buffer.from(signature, 'hex'));
  // Every pair is compared, so that the time it takes does not show which one matched.
  const matches = expected.flatMap((digest) => given.map((candidate) => timingSafeEqual(digest, candidate)));
  if (!matches.includes(true)) throw invalid();
}
