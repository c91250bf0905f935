/**
 * What every route declares in addition to its schemas. A route without a declaration cannot be registered
 * (`plugins/operation-list.ts`), and the tests compare the declarations with `operations.csv`.
 */
import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Consumer, ConsumerSession } from '../domain/consumer.ts';
import type { ErrorCode } from '../domain/error.ts';
import type { Allowance } from '../domain/quota.ts';
import type { BudgetName } from '../domain/rate-limit.ts';
import type { Scope } from '../domain/scope.ts';
import type { ClientAddress } from './http/client-address.ts';

/**
 * How an operation answers in a remote runtime, after authentication and validation and before anything is stored
 * (`operations.csv`, column `remote`): as in the local sandbox, or with this refusal.
 */
type RemoteAnswer =
  | 'same'
  | Extract<ErrorCode, 'launch_gates_closed' | 'local_sandbox_only' | 'remote_environment' | 'provider_not_configured'>;

/** Who may call. `scope` is the least scope that the route accepts (contract §3). */
export type RouteAccess =
  | { readonly auth: 'api_key'; readonly scope: Scope }
  | { readonly auth: 'optional_api_key' | 'none' | 'signature' | 'session' };

/** Described once for all operations, in `openapi/component.ts`. */
export type AnswerHeader = 'Location' | 'Idempotency-Replayed' | 'Preference-Applied' | 'Retry-After' | 'ETag';

export type RouteConfig = RouteAccess & {
  /** How the operation answers in a remote runtime; by default `same`. */
  readonly remote?: RemoteAnswer;
  /** Error codes of the operation itself, in addition to those that follow from its declaration. */
  readonly refusals?: readonly ErrorCode[];
  /** Headers of the success, in addition to the headers of every answer. */
  readonly headers?: readonly AnswerHeader[];
  /**
   * Administration and lists: few of them are handled at once, so that they slow no payment down (`plugins/turn.ts`).
   * Not for an operation that waits for another service: others would wait with it.
   */
  readonly isLowPriority?: boolean | ((request: FastifyRequest) => boolean);
  /** How many requests this one counts as for the rate limit; by default 1. */
  readonly cost?: number | ((request: FastifyRequest) => number);
  /** The budget of a request without a credential; by default `default`. */
  readonly budget?: BudgetName;
  /**
   * The key that the request rotates. A key that has rotated itself is accepted for the exact repetition of that
   * request (contract §1), which the handler answers as a replay.
   */
  readonly rotates?: (request: FastifyRequest) => string | undefined;
  /**
   * The body with the rules that the schema leaves to the handler: a bound idempotency key is answered before they are
   * judged (contract §6), or they follow from the configuration. A request that has other faults lists theirs too.
   */
  readonly rules?: z.ZodType;
  /** The operation writes nothing, although its method is not GET. */
  readonly readOnly?: boolean;
  /**
   * The request is counted only when it fails: what others at its address have used up refuses no valid caller.
   */
  readonly countsFailures?: boolean;
  /** Never rate-limited. */
  readonly uncounted?: boolean;
  /** The route is not an operation of the interface: a fallback answer. */
  readonly internal?: boolean;
};

/** The authenticated caller. */
export type Principal = {
  readonly orgId: string;
  readonly keyId: string;
  readonly scope: Scope;
  readonly allowance: Allowance;
};

/** The authenticated consumer. It is a type of its own because no route takes both kinds of callers. */
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
    /** Set by authentication; null on routes without an API key. Read it by `principalOf`. */
    principal: Principal | null;
    /** As `principal`, for routes that declare a session. Read it by `consumerOf`. */
    consumer: ConsumerPrincipal | null;
    /** By the process's own clock. */
    arrivedAtMs: number;
    /** Who sent the request, behind trusted proxies. */
    clientAddress: ClientAddress;
    /** The exact bytes of the body, for signatures and idempotency. */
    rawBody: Buffer;
    /** The body as it was sent, as JSON. Fastify replaces `body` by what its schema returns. */
    parsedBody: unknown;
  }
}

/** The caller of a route that declares an API key. */
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

/** Whether an operation writes for a partner or a consumer. Sign-up and sign-in write for nobody yet. */
export const isCommand = (method: string, access: RouteConfig): boolean =>
  method !== 'GET' && (access.auth === 'api_key' || access.auth === 'session') && !access.readOnly;

/** Whether the request waits for one of few seats. */
export const isLowPriority = (request: FastifyRequest): boolean => {
  const { isLowPriority: declared = false } = request.routeOptions.config.access ?? {};
  return typeof declared === 'boolean' ? declared : declared(request);
};

/** How many requests this one counts as. */
export const costOf = ({ cost = 1 }: Pick<RouteConfig, 'cost'>, request: FastifyRequest): number =>
  typeof cost === 'number' ? cost : cost(request);
