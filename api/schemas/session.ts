/** The consumer's sign-in (contract §12). */
import { z } from 'zod';
import { contactOf, OTP_LIMITS } from '../../domain/otp.ts';
import { constant, id, nullAsAbsent, objectId, outputText, pattern, timestamp } from './common.ts';
import { email, phone } from './contact.ts';
import { inAnyForm, isGiven, rule } from './rule.ts';

export const AUTHORIZATION_LENGTH_MAX = 256;

/** Optional in the schema: a request without it is answered by 401, not by 422. */
export const SessionHeader = z.object({
  authorization: z.string().max(AUTHORIZATION_LENGTH_MAX).nullish().meta({
    description: 'The access token of `POST /consumer/auth/verify-otp`.',
    example: 'Bearer <access_token>',
  }),
});

export const RequestOTPBody = z
  .strictObject({
    email: nullAsAbsent(email('')).meta({ description: 'Where the code is sent.', example: 'marcia@campbell.example' }),
    phone: nullAsAbsent(phone('')).meta({
      description: 'E.164. In the local sandbox only: nothing sends text messages.',
    }),
  })
  .check(
    rule(z.object({ email: inAnyForm(), phone: inAnyForm() }), (body, context) => {
      if (isGiven(body.email) === isGiven(body.phone))
        context.addIssue({ code: 'custom', path: [], message: 'give either email or phone' });
    }),
  )
  .meta({
    id: 'RequestOTPBody',
    description: 'Either `email` or `phone`.',
    example: { email: 'marcia@campbell.example' },
  });

/** The contact of a valid body. */
export const requestedContact = (body: z.output<typeof RequestOTPBody>) =>
  body.email === undefined ? contactOf('phone', body.phone ?? '') : contactOf('email', body.email);

export const OTPChallengeResponse = z
  .object({
    challenge_id: objectId('Names the code; `verify-otp` takes it.'),
    expires_at: timestamp('Until this time the code is valid.'),
    sandbox_code: z
      .string()
      .optional()
      .meta({ description: 'The code itself, only in the local sandbox.', example: '042917' }),
  })
  .meta({ id: 'OTPChallengeResponse' });

const CODE = new RegExp(`^[0-9]{${OTP_LIMITS.codeDigits}}$`);

export const VerifyOTPBody = z
  .strictObject({
    challenge_id: id('From `request-otp`.'),
    code: pattern(CODE, [OTP_LIMITS.codeDigits, OTP_LIMITS.codeDigits], `${OTP_LIMITS.codeDigits} digits`).meta({
      description: 'The code that was sent.',
      example: '042917',
    }),
  })
  .meta({ id: 'VerifyOTPBody' });

export const SessionResponse = z
  .object({
    access_token: outputText('Opaque. No other answer shows it.', '<access_token>'),
    token_type: constant('Bearer', 'How the token is sent: `Authorization: Bearer <access_token>`.'),
    expires_at: timestamp('When the session ends.'),
    consumer_id: objectId('The id of the consumer.'),
  })
  .meta({ id: 'SessionResponse' });
