/** Has a one-time code sent, for as long as it is valid and no server refuses it; the workflow knows neither code nor contact. */
import type { OtpOutcome } from '../activities/otp.ts';
import { visible } from './activities.ts';
import type { OtpInput } from './contract.ts';

export async function otp(input: OtpInput): Promise<OtpOutcome> {
  return await visible('Send the one-time code').sendOtp(input);
}
