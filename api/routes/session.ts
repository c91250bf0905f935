import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { z } from 'zod';
import { endSession } from '../../db/queries/consumer.ts';
import { DomainError } from '../../domain/error.ts';
import { OTP_LIMITS } from '../../domain/otp.ts';
import { budgetsOf } from '../../domain/rate-limit.ts';
import { isRemote } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import { requestOtp, verifyOtp } from '../http/otp.ts';
import { requireBudget } from '../http/rate-limit.ts';
import { consumerOf } from '../route-config.ts';
import {
  OTPChallengeResponse,
  RequestOTPBody,
  requestedContact,
  SessionHeader,
  SessionResponse,
  VerifyOTPBody,
} from '../schemas/session.ts';

const TAGS = ['Consumer'];
const WINDOW_SECONDS = OTP_LIMITS.requestWindowMs / 1_000;

const INVALID_CODE = 'The code is wrong, was used before or has expired. Request a new one.';

const TOO_MANY_UNPROVED =
  'Too many codes were requested from this address and not used. Wait for the time in the Retry-After header.';

/** Sign-in and sign-out of consumers (contract §12). */
export const sessionRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    const showsCode = !isRemote(deps.runtime);
    const budgets = budgetsOf(deps.config.rateLimitPerMinute);

    app.post(
      '/consumer/auth/request-otp',
      {
        config: {
          access: {
            auth: 'none',
            budget: 'code-request',
            remote: 'provider_not_configured',
          },
        },
        schema: {
          tags: TAGS,
          operationId: 'requestOtp',
          summary: 'Ask for a one-time code',
          description: [
            'The answer is alike for known and unknown contacts.',
            `A contact gets at most ${OTP_LIMITS.requestsMax} codes an hour.`,
          ].join(' '),
          body: RequestOTPBody,
          response: { 200: OTPChallengeResponse },
        },
      },
      async (request, reply) => {
        const { limitKey } = request.clientAddress;
        const answer = await requestOtp(deps, requestedContact(request.body), { limitKey, requestId: request.id });
        if ('retryAfterSeconds' in answer) {
          const { retryAfterSeconds } = answer;
          reply.header('RateLimit-Policy', `"otp";q=${OTP_LIMITS.requestsMax};w=${WINDOW_SECONDS}`);
          reply.header('RateLimit', `"otp";r=0;t=${retryAfterSeconds}`);
          reply.header('Retry-After', String(retryAfterSeconds));
          throw new DomainError('rate_limited', {}, 'This contact has been sent the maximum number of codes for now.');
        }
        const { challengeId, expiresAt, code, counted } = answer;
        await requireBudget(reply, budgets['one-time-code'], counted, { detail: TOO_MANY_UNPROVED });
        return {
          challenge_id: challengeId,
          expires_at: expiresAt.toISOString(),
          ...(showsCode ? { sandbox_code: code } : {}),
        };
      },
    );

    app.post(
      '/consumer/auth/verify-otp',
      {
        config: {
          access: {
            auth: 'none',
            refusals: ['credential_invalid'],
            countsFailures: true,
          },
        },
        schema: {
          tags: TAGS,
          operationId: 'verifyOtp',
          summary: 'Open a session with a one-time code',
          description: [
            `A code is valid for ${OTP_LIMITS.validityMs / 60_000} minutes, ${OTP_LIMITS.triesMax} tries and one use.`,
            'Every invalid code gets the same answer.',
          ].join(' '),
          body: VerifyOTPBody,
          response: { 200: SessionResponse },
        },
      },
      async ({ body, clientAddress: { limitKey } }) => {
        const opened = await verifyOtp(deps, { challengeId: body.challenge_id, code: body.code, limitKey });
        if (!opened) throw new DomainError('credential_invalid', {}, INVALID_CODE);
        const { token, session } = opened;
        return {
          access_token: token,
          token_type: 'Bearer' as const,
          expires_at: session.expiresAt.toISOString(),
          consumer_id: session.consumerId,
        };
      },
    );

    app.post(
      '/consumer/auth/logout',
      {
        config: { access: { auth: 'session' } },
        schema: {
          tags: TAGS,
          operationId: 'logout',
          summary: 'End the session',
          headers: SessionHeader,
          response: { 204: z.undefined() },
        },
      },
      async (request, reply) => {
        const { orgId, session } = consumerOf(request);
        await endSession(deps.db, orgId, session.sessionId, deps.now());
        return reply.code(204).send();
      },
    );
  };
