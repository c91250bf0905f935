/** One-time codes (contract §12): what a code proves, how long it is valid, how often it may be requested and tried. */

export type Channel = 'email' | 'phone';

/** Where a person can be reached, normalized. This is personal data: only the database stores it. */
export type Contact = { readonly channel: Channel; readonly address: string };

export const OTP_LIMITS = {
  codeDigits: 6,
  validityMs: 5 * 60_000,
  triesMax: 5,
  requestsMax: 5,
  requestWindowMs: 60 * 60_000,
  /** Wrong codes of one contact in a day, after which it is locked down: one code an hour, with one try. */
  wrongMax: 20,
  wrongWindowSeconds: 24 * 60 * 60,
  lockedRequestsMax: 1,
} as const;

/**
 * How strict the next challenge of a contact is. A locked contact is not shut out: its owner still gets a code, and
 * needs one try for it. So is everyone while too many wrong codes are tried everywhere.
 */
export const strictnessOf = (wrong: { readonly ofContact: number; readonly isOverall: boolean }) => {
  const isLocked = wrong.ofContact >= OTP_LIMITS.wrongMax;
  return {
    requestsMax: isLocked ? OTP_LIMITS.lockedRequestsMax : OTP_LIMITS.requestsMax,
    triesMax: isLocked || wrong.isOverall ? 1 : OTP_LIMITS.triesMax,
  };
};

/** A challenge as stored. It has a hash of its code, and a sealed copy of the code until it was sent. */
export type OtpChallenge = {
  readonly challengeId: string;
  readonly channel: Channel;
  /** Keyed with the server's pepper. The requests of a contact are counted by it. */
  readonly contactHash: Buffer;
  readonly contactSealed: string;
  readonly codeHash: Buffer;
  readonly codeSealed: string | null;
  /** How often a code was compared with this one; a strict challenge begins with most of its tries used. */
  readonly attempts: number;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly consumedAt: Date | null;
};

/** Mail addresses are compared without case, as mail systems do in practice. */
export const contactOf = (channel: Channel, address: string): Contact => ({
  channel,
  address: channel === 'email' ? address.toLowerCase() : address,
});

/** What a sealed part is bound to. It cannot be opened as another part, or for another challenge. */
export const otpBinding = (part: 'contact' | 'code', challengeId: string): string => `otp.${part}:${challengeId}`;
