/** Sends one-time codes. Neither the code nor the contact leaves this file but to the mail server. */
import { eraseCode, findChallenge } from '../db/queries/otp.ts';
import { DomainError } from '../domain/error.ts';
import { OTP_LIMITS, type OtpChallenge, otpBinding } from '../domain/otp.ts';
import type { OtpInput } from '../workflows/contract.ts';
import type { ActivityDeps } from './deps.ts';

/** `not_needed`: sent before, used before, or not valid any more. */
export type OtpResult = { readonly outcome: 'sent' | 'refused' | 'not_needed' };

export function otpActivities(deps: ActivityDeps) {
  return {
    /**
     * Sends a code while it is valid, then forgets it. After a crash in between the same mail may come twice. Expiry is
     * by real time, not the workflow's: an attempt that is repeated for minutes must notice that the code is over.
     */
    sendOtp: async ({ challengeId }: OtpInput): Promise<OtpResult> => {
      const challenge = await findChallenge(deps.db, challengeId);
      if (!challenge || challenge.codeSealed === null) return { outcome: 'not_needed' };
      const outcome =
        challenge.expiresAt <= deps.now() ? 'not_needed' : await send(deps, challenge, challenge.codeSealed);
      await eraseCode(deps.db, challengeId);
      return { outcome };
    },
  };
}

async function send(
  deps: ActivityDeps,
  { challengeId, contactSealed }: OtpChallenge,
  codeSealed: string,
): Promise<'sent' | 'refused'> {
  if (!deps.mailer) throw new DomainError('provider_not_configured');
  const to = deps.sealer.open(contactSealed, otpBinding('contact', challengeId))?.toString();
  const code = deps.sealer.open(codeSealed, otpBinding('code', challengeId))?.toString();
  if (to === undefined || code === undefined)
    throw new Error(`challenge ${challengeId} was sealed by a key that is gone`);
  return await deps.mailer.send({
    to,
    subject: 'Your one-time code',
    text: `Your code is ${code}\n\nIt is valid for ${OTP_LIMITS.validityMs / 60_000} minutes and can be used once. If you did not ask for it, you need not do anything.\n`,
    id: `otp.${challengeId}`,
  });
}
