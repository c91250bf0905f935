/**
 * New ids (contract §1): lower-case UUIDv7, except where an idempotency key determines the id: of a settlement, and of
 * a verification that was begun with a key.
 */
import { createHash, randomInt } from 'node:crypto';
import { stringify, v7 } from 'uuid';

/** Half of what a UUIDv7 can count. */
const FIRST_MAX = 2 ** 31;
/** An id follows the last one of its process, unless the clock was set back by more than this. */
const SET_BACK_MS = 60_000;

/**
 * Makes ids in their order. `v7` alone keeps the latest time that it ever saw: after a clock that was a year ahead, no
 * month would have the ids of the process until its restart.
 *
 * @param now in epoch milliseconds
 */
export function createIds(now: () => number): () => string {
  let latest = { msecs: Number.NEGATIVE_INFINITY, seq: 0 };
  return () => {
    const msecs = now();
    const follows = msecs <= latest.msecs && latest.msecs - msecs <= SET_BACK_MS;
    latest = follows ? { ...latest, seq: latest.seq + 1 } : { msecs, seq: randomInt(FIRST_MAX) };
    return v7(latest);
  };
}

/** By how much the clock of this process is known to be ahead, in milliseconds. */
let aheadMs = 0;

export const newId = createIds(() => Date.now() - aheadMs);

/** Runs a function in a process whose clock is ahead by so much: the ids that it makes are of the right time. */
export async function withClockAhead<Result>(ms: number, run: () => Promise<Result>): Promise<Result> {
  aheadMs = ms;
  try {
    return await run();
  } finally {
    aheadMs = 0;
  }
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Whether `newId` or `verificationIdOf` can have made this text. Other text, such as one with NUL, need not be looked
 * up.
 */
export const isId = (text: string): boolean => UUID.test(text);

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';
const SETTLEMENT_DIGEST_BYTES = 20;
/** Of a UUID (RFC 9562): each holds a few bits that say its form. */
const VERSION_BYTE = 6;
const VARIANT_BYTE = 8;

/**
 * `stl_` and 32 lower-case base32 digits of SHA-256 over (organization, idempotency key). So one key can only ever name
 * one settlement (contract §6).
 */
export function settlementIdOf(orgId: string, idempotencyKey: string): string {
  const digest = createHash('sha256')
    .update(`settlement/v1\0${orgId}\0${idempotencyKey}`)
    .digest()
    .subarray(0, SETTLEMENT_DIGEST_BYTES);
  let bits = BigInt(`0x${digest.toString('hex')}`);
  let text = '';
  for (let digit = 0; digit < (SETTLEMENT_DIGEST_BYTES * 8) / 5; digit += 1) {
    text = (BASE32[Number(bits & 31n)] ?? '') + text;
    bits >>= 5n;
  }
  return `stl_${text}`;
}

const SETTLEMENT_ID = /^stl_[a-z2-7]{32}$/;

/** Whether `settlementIdOf` can have made this text. */
export const isSettlementId = (text: string): boolean => SETTLEMENT_ID.test(text);

/** A UUIDv8 of SHA-256 over (organization, idempotency key). So one key can only ever name one verification. */
export function verificationIdOf(orgId: string, idempotencyKey: string): string {
  const bytes = createHash('sha256').update(`verification/v1\0${orgId}\0${idempotencyKey}`).digest();
  bytes.writeUInt8((bytes.readUInt8(VERSION_BYTE) & 0x0f) | 0x80, VERSION_BYTE);
  bytes.writeUInt8((bytes.readUInt8(VARIANT_BYTE) & 0x3f) | 0x80, VARIANT_BYTE);
  return stringify(bytes);
}

/** The id of a verification's applicant at the simulated identity provider: the same one each time. */
export const simulatedApplicantId = (verificationId: string): string =>
  `sim_${createHash('sha256').update(`applicant\0${verificationId}`).digest('hex').slice(0, 24)}`;
