/** One-time codes (contract §12): what a code proves, for how long, and how often it may be asked for and tried. */

export const CHANNELS = ['email', 'phone'] as const;
export type Channel = (typeof CHANNELS)[number];

/** Where a person can be reached, in the one spelling by which it is known. Personal: for the database alone. */
export type Contact = { readonly channel: Channel; readonly address: string };

export const OTP_LIMITS = {
  codeDigits: 6,
  validityMs: 5 * 60_000,
  triesMax: 5,
  requestsMax: 5,
  requestWindowMs: 60 * 60_000,
} as const;

/** A challenge as stored; of its code there is a hash, and a sealed copy only until it was sent. */
export type OtpChallenge = {
  readonly challengeId: string;
  readonly channel: Channel;
  /** Under the server's pepper; counts the requests of one contact. */
  readonly contactHash: Buffer;
  readonly contactSealed: string;
  readonly codeHash: Buffer;
  readonly codeSealed: string | null;
  /** How often a code was compared with this challenge's. */
  readonly attempts: number;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly consumedAt: Date | null;
};

/** Mail systems tell capital letters apart in theory alone; whoever types one is the same person. */
export const contactOf = (channel: Channel, address: string): Contact => ({
  channel,
  address: channel === 'email' ? address.toLowerCase() : address,
});

/** What a challenge's sealed parts are bound to; they open for no other one. */
export const otpBinding = (part: 'contact' | 'code', challengeId: string): string => `otp.${part}:${challengeId}`;
