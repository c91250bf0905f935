/** Sends one-time codes (contract §12). This file passes the code and the contact to the mail server only. */
import { asyncLocalStorage } from '@temporalio/activity';
import { eraseCode, findChallenge } from '../db/queries/otp.ts';
import { OTP_LIMITS, type OtpChallenge, otpBinding } from '../domain/otp.ts';
import type { OtpInput } from '../workflows/contract.ts';
import type { ActivityDeps } from './deps.ts';
import { ProviderFailure } from './failure.ts';
import type { MailOutcome } from './providers/mailer.ts';

/** `not_needed`: the code was sent or used before, or it has expired. */
export type OtpResult = { readonly outcome: MailOutcome | 'not_needed' };

export function otpActivities(deps: ActivityDeps) {
  return {
    /**
     * Sends a code that is still valid, then erases it. After a crash between the two, the same mail may come twice.
     * The expiry is by the database's clock: an activity may be retried for minutes, and the code expires meanwhile. By
     * the clock of a worker that is ahead, no code would be sent.
     *
     * @throws Error when the server fails, and on a worker without one; it is retried
     */
    sendOtp: async ({ challengeId }: OtpInput): Promise<OtpResult> => {
      const challenge = await findChallenge(deps.db, challengeId);
      if (!challenge || challenge.codeSealed === null) return { outcome: 'not_needed' };
      const outcome = challenge.isExpired ? 'not_needed' : await send(deps, challenge, challenge.codeSealed);
      await eraseCode(deps.db, challengeId);
      return { outcome };
    },
  };
}

async function send(
  deps: ActivityDeps,
  { challengeId, contactSealed }: OtpChallenge,
  codeSealed: string,
): Promise<MailOutcome> {
  // Another worker may have one, or this one after its restart.
  if (!deps.mailer) throw new ProviderFailure('mail_server', 'This worker has no mail server.');
  const to = deps.sealer.open(contactSealed, otpBinding('contact', challengeId)).toString();
  const code = deps.sealer.open(codeSealed, otpBinding('code', challengeId)).toString();
  deps.crash?.('mail:before');
  const mail = {
    to,
    subject: 'Your one-time code',
    text:
      `Your code is ${code}\n\nIt is valid for ${OTP_LIMITS.validityMs / 60_000} minutes and can be used once. ` +
      'If you did not ask for it, you need not do anything.\n',
    id: `otp.${challengeId}`,
  };
  // A worker that stops cancels what is still under way after its grace.
  const stop = asyncLocalStorage.getStore()?.cancellationSignal ?? new AbortController().signal;
  const outcome = await deps.mailer.send(mail, stop);
  deps.crash?.('mail:after');
  return outcome;
}
