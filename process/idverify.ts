/**
 * The client of the identity-verification provider (contract §8, §9). A remote runtime sends real, signed HTTP
 * requests. The local sandbox has a simulation, which sends nothing. Each verification has one applicant: the
 * verification's id is the provider's external user id. A worker creates applicants, and the API asks for access
 * tokens, which it passes on and never logs.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { request } from 'undici';
import { z } from 'zod';
import { simulatedApplicantId } from '../db/id.ts';
import { DomainError } from '../domain/error.ts';
import type { ApplicantOrder, IdentityProvider, SdkToken } from '../domain/idverify.ts';
import { isRemote, type RuntimeEnvironment } from '../domain/runtime.ts';

export type IdverifySettings = { readonly baseUrl: string; readonly appToken: string; readonly secretKey: string };

export type IdverifyDeps = {
  readonly runtime: RuntimeEnvironment;
  readonly settings: IdverifySettings | undefined;
  readonly now: () => Date;
  /** For all requests of one call together. */
  readonly deadlineMs?: number;
  readonly log: { warn(fields: Record<string, unknown>, message: string): void };
};

const DEADLINE_MS = 8_000;
export const UNAVAILABLE =
  'The identity provider gave no valid answer. Repeat the request: it continues the same verification.';
const ANSWER_BYTES_MAX = 64 * 1024;
const TOKEN_LIFE_SECONDS = 600;

/**
 * The provider of this runtime. The local sandbox never uses the real one.
 *
 * @returns undefined when a remote runtime has no settings for it
 */
export function createIdverify(deps: IdverifyDeps): IdentityProvider | undefined {
  if (!isRemote(deps.runtime)) return simulatedIdverify(deps.now);
  return deps.settings && remoteIdverify(deps.settings, deps);
}

const tokenExpiry = (now: Date): Date => new Date(now.getTime() + TOKEN_LIFE_SECONDS * 1_000);

const simulatedIdverify = (now: () => Date): IdentityProvider => ({
  simulation: true,
  createApplicant: async ({ verificationId }) => simulatedApplicantId(verificationId),
  issueToken: async () => ({
    token: `sim-sdk-${randomBytes(32).toString('base64url')}`,
    expiresAt: tokenExpiry(now()),
  }),
});

/** An answer about another user is refused: its token would show that person's verification to this partner. */
const named = (verificationId: string) => z.literal(verificationId).nullish();
const applicantAnswer = (verificationId: string) =>
  z.object({ id: z.string().regex(/^[\x21-\x7e]{1,255}$/), externalUserId: named(verificationId) });
const tokenAnswer = (verificationId: string) =>
  z.object({ token: z.string().min(1).max(4_096), userId: named(verificationId) });

type Call = { readonly method: 'GET' | 'POST'; readonly path: string; readonly body?: object };
type Answer = { readonly status: number; readonly body: unknown };
type Send = (call: Call) => Promise<Answer>;

const remoteIdverify = (
  settings: IdverifySettings,
  { now, log, deadlineMs = DEADLINE_MS }: IdverifyDeps,
): IdentityProvider => {
  const inTime = async <Result>(ask: (send: Send) => Promise<Result>): Promise<Result> => {
    const signal = AbortSignal.timeout(deadlineMs);
    try {
      return await ask((call) => sendSigned(settings, now(), { ...call, signal }));
    } catch (error) {
      // The provider's text can quote the applicant, so only the kind of the error is logged.
      const reason =
        error instanceof UnexpectedAnswer ? error.message : error instanceof Error ? error.name : 'unknown';
      log.warn({ reason }, 'the identity provider failed');
      throw new DomainError('temporarily_unavailable', {}, UNAVAILABLE);
    }
  };
  return {
    simulation: false,
    createApplicant: (order) => inTime((send) => ensureApplicant(send, order)),
    issueToken: (applicant) => inTime((send) => issueToken(send, applicant, now)),
  };
};

/** The provider gave an answer that the service cannot use. The message names only the request and the status. */
class UnexpectedAnswer extends Error {}

async function issueToken(
  send: Send,
  { verificationId, levelName }: Pick<ApplicantOrder, 'verificationId' | 'levelName'>,
  now: () => Date,
): Promise<SdkToken> {
  const requestedAt = now();
  const answer = await send({
    method: 'POST',
    path: '/resources/accessTokens/sdk',
    body: { userId: verificationId, levelName, ttlInSecs: TOKEN_LIFE_SECONDS },
  });
  const { token } = parsed('access token', tokenAnswer(verificationId), answer);
  return { token, expiresAt: tokenExpiry(requestedAt) };
}

/** Creates the applicant, or finds the one that an earlier attempt created. */
async function ensureApplicant(send: Send, order: ApplicantOrder): Promise<string> {
  const created = await send({
    method: 'POST',
    path: `/resources/applicants?levelName=${encodeURIComponent(order.levelName)}`,
    body: {
      externalUserId: order.verificationId,
      type: order.verificationType === 'kyb' ? 'company' : 'individual',
      ...(order.email === null ? {} : { email: order.email }),
      ...(order.phone === null ? {} : { phone: order.phone }),
    },
  });
  const shape = applicantAnswer(order.verificationId);
  if (created.status !== 409) return parsed('applicant', shape, created).id;
  const found = await send({
    method: 'GET',
    path: `/resources/applicants/-;externalUserId=${encodeURIComponent(order.verificationId)}/one`,
  });
  return parsed('existing applicant', shape, found).id;
}

function parsed<Shape extends z.ZodType>(request: string, shape: Shape, { status, body }: Answer): z.output<Shape> {
  if (status < 200 || status > 299) throw new UnexpectedAnswer(`${request}: status ${status}`);
  const result = shape.safeParse(body);
  if (!result.success) throw new UnexpectedAnswer(`${request}: invalid answer`);
  return result.data;
}

/**
 * The signature covers the time, the method, the path with its query, and the exact body. Redirects are not followed.
 */
async function sendSigned(
  { baseUrl, appToken, secretKey }: IdverifySettings,
  now: Date,
  { method, path, body, signal }: Call & { readonly signal: AbortSignal },
): Promise<Answer> {
  const url = new URL(baseUrl.replace(/\/+$/, '') + path);
  const bytes = body === undefined ? '' : JSON.stringify(body);
  const timestamp = String(Math.floor(now.getTime() / 1_000));
  const signature = createHmac('sha256', secretKey)
    .update(`${timestamp}${method}${url.pathname}${url.search}${bytes}`)
    .digest('hex');
  const answer = await request(url, {
    method,
    headers: {
      accept: 'application/json',
      'x-app-token': appToken,
      'x-app-access-ts': timestamp,
      'x-app-access-sig': signature,
      ...(bytes === '' ? {} : { 'content-type': 'application/json' }),
    },
    ...(bytes === '' ? {} : { body: bytes }),
    signal,
  });
  return { status: answer.statusCode, body: await readJson(answer.body) };
}

/** @returns undefined when the answer is not JSON */
async function readJson(stream: AsyncIterable<Uint8Array>): Promise<unknown> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of stream) {
    size += part.length;
    if (size > ANSWER_BYTES_MAX) throw new UnexpectedAnswer('the answer is too large');
    parts.push(part);
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString());
  } catch {
    return undefined;
  }
}
