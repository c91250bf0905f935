/** Sends a one-time code, and retries while the code is valid. The workflow knows neither the code nor the contact. */
import type { OtpResult } from '../activities/otp.ts';
import { remote } from './activities.ts';
import type { OtpInput } from './contract.ts';

export async function otp(input: OtpInput): Promise<OtpResult> {
  return await remote('Send the one-time code').sendOtp(input);
}
