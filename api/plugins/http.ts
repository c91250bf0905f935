/**
 * What every request and every answer has (contract §1): a request id, headers, a strict JSON body, one log line, and a
 * problem for unknown addresses and methods.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { z } from 'zod';
import { DomainError } from '../../domain/error.ts';
import { isRemote } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import { type ClientAddress, createClientAddress } from '../http/client-address.ts';
import { namesOneHost } from '../http/client-error.ts';
import { handleError } from '../http/error-handler.ts';
import { headerLines } from '../http/header-lines.ts';
import { parseJsonBody } from '../http/json-body.ts';
import { subjectFields } from '../http/log-subject.ts';
import { splitAddress } from '../http/query-string.ts';
import { FAULTS_MAX, InvalidRequestError, missingField, type RequestFault } from '../http/request-fault.ts';
import { securityHeaders } from '../http/security-header.ts';
import { faultsOfIssues, requestFaults } from '../http/validation.ts';
import { methodsAt } from './method-fallback.ts';

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** The caller's X-Request-ID if it is one header line of the allowed form; otherwise a new id. */
export function requestIdOf(raw: IncomingMessage): string {
  const [given, ...more] = headerLines(raw, 'x-request-id');
  return given !== undefined && more.length === 0 && REQUEST_ID.test(given) ? given : randomUUID();
}

const JSON_TYPE = /^application\/json(\s*;\s*charset="?utf-8"?)?\s*$/i;
const NO_BYTES = Buffer.alloc(0);

/** @throws DomainError `unsupported_media_type` */
function requireReadableBody({ headers, raw }: FastifyRequest): void {
  if (headers['content-encoding'] !== undefined)
    throw new DomainError('unsupported_media_type', {}, 'Send the body without content encoding.');
  if (headerLines(raw, 'content-type').length > 1) throw new DomainError('unsupported_media_type');
}

/** Whether the body is empty. A proxy may send an empty one in chunks: this is known when the first byte or the end comes. */
async function isEmpty({ headers, raw }: FastifyRequest): Promise<boolean> {
  if (headers['transfer-encoding'] === undefined) return (headers['content-length'] ?? '0') === '0';
  if (!raw.complete) await once(raw, 'readable');
  return raw.readableLength === 0;
}

/** An empty body has no type, although some clients send one. */
function removeTypeOfNothing({ headers }: FastifyRequest): void {
  delete headers['content-type'];
  delete headers['transfer-encoding'];
}

/** Refuses `null` as a body: a schema with an optional body would accept it as absent. */
function requireGiven(body: unknown): unknown {
  if (body === null) throw new InvalidRequestError([missingField(['body'])]);
  return body;
}

/** The headers of every answer, besides its request id. */
export const answerHeaders = ({ runtime }: Pick<ApiDeps, 'runtime'>): Readonly<Record<string, string>> => ({
  ...securityHeaders(isRemote(runtime)),
  'Cache-Control': 'no-store',
});

/** One line for each request. A leaked key is found by its id, and its user by the network of the address. */
function logAccess(log: FastifyBaseLogger, request: FastifyRequest, status: number): void {
  log.info(
    {
      request_id: request.id,
      method: request.method,
      route: request.routeOptions.url ?? 'none',
      status,
      duration_ms: Math.round(performance.now() - request.arrivedAtMs),
      org_id: request.principal?.orgId ?? request.consumer?.orgId,
      key_id: request.principal?.keyId,
      client: request.clientAddress.logged,
      ...subjectFields(request),
    },
    'request',
  );
}

/** Each is logged once. */
const DOUBTS: Readonly<Record<NonNullable<ClientAddress['doubt']>, string>> = {
  untrusted_peer: 'X-Forwarded-For came from an address that TRUSTED_PROXIES does not name, and is not believed',
  unreadable_entry:
    'a trusted proxy sent an X-Forwarded-For with an entry that is no address: its callers are counted as one, the proxy',
};

/** An operation that takes no body accepts an empty object, which some clients always send. */
const NoBody = z.strictObject({});

function noBodyFaults(body: unknown): RequestFault[] {
  const result = NoBody.safeParse(body, { reportInput: true });
  return result.success ? [] : faultsOfIssues(result.error.issues, 'body');
}

type HttpOptions = {
  readonly deps: ApiDeps;
  /** Answers with a page who prefers one to a problem. */
  readonly sendNotFoundPage: (request: FastifyRequest, reply: FastifyReply) => FastifyReply | undefined;
};

export const http = fp(async (app: FastifyInstance, { deps, sendNotFoundPage }: HttpOptions) => {
  app.decorateRequest('rawBody');
  app.decorateRequest('parsedBody');
  app.decorateRequest('clientAddress');
  const clientAddressOf = createClientAddress(deps.config.trustedProxies);
  const headersOfAll = answerHeaders(deps);
  const warned = new Set<string>();
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(/^application\/json/i, { parseAs: 'buffer' }, (request, body, done) => {
    if (!JSON_TYPE.test(request.headers['content-type'] ?? '')) return done(new DomainError('unsupported_media_type'));
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body);
    request.rawBody = bytes;
    try {
      request.parsedBody = bytes.length === 0 ? undefined : requireGiven(parseJsonBody(bytes));
      done(null, request.parsedBody);
    } catch (error) {
      done(error instanceof Error ? error : new DomainError('internal_error'));
    }
  });
  app.addHook('onRequest', (request, reply, done) => {
    request.rawBody = NO_BYTES;
    request.parsedBody = undefined;
    request.clientAddress = clientAddressOf(request.raw);
    const { doubt } = request.clientAddress;
    if (doubt !== undefined && !warned.has(doubt)) {
      warned.add(doubt);
      request.log.warn(DOUBTS[doubt]);
    }
    reply.headers(headersOfAll).header('X-Request-ID', request.id);
    if (!namesOneHost(request.raw)) {
      reply.header('Connection', 'close');
      throw new DomainError('request_malformed');
    }
    done();
  });
  // Once the caller is known: a credential is refused before its body is.
  app.addHook('preParsing', async (request) => {
    // The type of a provider's body does not matter.
    if (request.method === 'GET' || request.routeOptions.config.access?.auth === 'signature') return;
    requireReadableBody(request);
    if (await isEmpty(request)) removeTypeOfNothing(request);
  });
  app.addHook('preValidation', (request, _reply, done) => {
    if (request.routeOptions.schema?.body !== undefined || request.parsedBody === undefined) return done();
    const faults = noBodyFaults(request.parsedBody);
    if (faults.length > 0) throw new InvalidRequestError([...requestFaults(request), ...faults].slice(0, FAULTS_MAX));
    done();
  });
  // Its fields are the ones above, and none of them is secret: looking for what to redact costs more than the line.
  const accessLog = app.log.child({}, { redact: [] });
  app.onRequestEnd((request, _reply, status) => logAccess(accessLog, request, status));
  app.setErrorHandler(handleError);
  app.setNotFoundHandler((request, reply) => {
    const allow = app.supportedMethods.includes(request.method)
      ? undefined
      : methodsAt(app, splitAddress(request.url).path);
    if (allow === undefined) {
      const page = sendNotFoundPage(request, reply);
      if (page === undefined)
        return handleError(new DomainError('not_found', {}, 'There is no such address.'), request, reply);
      request.refusal = 'not_found';
      return page;
    }
    return handleError(new DomainError('method_not_allowed'), request, reply.header('Allow', allow));
  });
});
