/** Sends a one-time code, and retries while the code is valid. The workflow knows neither the code nor the contact. */
import type { OtpResult } from '../activities/otp.ts';
import { mail } from './activities.ts';
import type { OtpInput } from './contract.ts';
import { uncancelable } from './uncancelable.ts';

export const otp = uncancelable(
  async (input: OtpInput): Promise<OtpResult> => await mail('Send the one-time code').sendOtp(input),
);
