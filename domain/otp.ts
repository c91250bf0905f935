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
} as const;

/** A challenge as stored. It has a hash of its code, and a sealed copy of the code until it was sent. */
export type OtpChallenge = {
  readonly challengeId: string;
  readonly channel: Channel;
  /** Keyed with the server's pepper. The requests of a contact are counted by it. */
  readonly contactHash: Buffer;
  readonly contactSealed: string;
  readonly codeHash: Buffer;
  readonly codeSealed: string | null;
  /** How often a code was compared with this one. */
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
