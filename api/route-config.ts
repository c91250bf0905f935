/**
 * What every route declares beside its schemas. `api/app.ts` refuses to build with a route that declares nothing,
 * and the tests compare the declarations with `operations.csv`.
 */
import type { FastifyRequest } from 'fastify';
import type { Consumer, ConsumerSession } from '../domain/consumer.ts';
import type { ErrorCode } from '../domain/error.ts';
import type { RemoteAnswer } from '../domain/runtime.ts';
import type { Scope } from '../domain/scope.ts';

/** Who may call. `scope` is the least capability that the route accepts (contract §3). */
export type RouteAccess =
  | { readonly auth: 'api_key'; readonly scope: Scope }
  | { readonly auth: 'optional_api_key' | 'none' | 'signature' | 'session' };

/** Described once for all operations, in `plugins/openapi.ts`. */
export type AnswerHeader = 'Location' | 'Idempotency-Replayed' | 'Preference-Applied' | 'Retry-After';

export type RouteConfig = RouteAccess & {
  /** How the operation answers in a remote runtime; `same` where nothing is said. */
  readonly remote?: RemoteAnswer;
  /** What the operation itself may refuse with, beside what its declaration implies. */
  readonly refusals?: readonly ErrorCode[];
  /** Headers of the success, beside those of every answer. */
  readonly headers?: readonly AnswerHeader[];
  /** How many requests one of these counts as; 1 where nothing is said. */
  readonly cost?: number;
  /** Never rate-limited: what decides whether the process gets traffic at all. */
  readonly uncounted?: boolean;
  /** Needed for routes that are no operation of the interface: the fallback answers. */
  readonly internal?: boolean;
};

/** The authenticated caller. */
export type Principal = { readonly orgId: string; readonly keyId: string; readonly scope: Scope };

/** The authenticated consumer; a type of its own, since no route takes both kinds of caller. */
export type ConsumerPrincipal = {
  /** The consumer's own organization. */
  readonly orgId: string;
  readonly consumer: Consumer;
  readonly session: ConsumerSession;
};

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: RouteConfig;
  }
  interface FastifyRequest {
    /** Set by authentication; null on routes without. Read it by `principalOf`. */
    principal: Principal | null;
    /** As `principal`, on routes that declare a session. Read it by `consumerOf`. */
    consumer: ConsumerPrincipal | null;
    /** The exact bytes of the body, for signatures and idempotency. */
    rawBody: Buffer;
  }
}

/** The caller of a route that declares a credential. */
export function principalOf(request: FastifyRequest): Principal {
  if (request.principal === null)
    throw new Error(`route ${request.routeOptions.url} read a principal without declaring a credential`);
  return request.principal;
}

/** The caller of a route that declares a session. */
export function consumerOf(request: FastifyRequest): ConsumerPrincipal {
  if (request.consumer === null)
    throw new Error(`route ${request.routeOptions.url} read a consumer without declaring a session`);
  return request.consumer;
}
