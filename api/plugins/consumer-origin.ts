/**
 * The web origins that may call the consumers' operations (contract §12, CORS). An origin is compared as a whole, so
 * that no other scheme, port or longer name matches. No other operation answers a browser's origin. A session is sent
 * in `Authorization` and never by a browser itself, so no credentials are allowed.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import type { ApiDeps } from '../deps.ts';
import { headerLines } from '../http/header-lines.ts';
import { splitAddress } from '../http/query-string.ts';

const CONSUMER_PATH = '/consumer/';
/** For how long a browser may remember what a preflight answered. */
const MAX_AGE_SECONDS = 600;
const ALLOWED_HEADERS = 'Accept, Authorization, Content-Type, Idempotency-Key, If-None-Match, Prefer, X-Request-ID';
/** The headers that a page's script may read, in addition to those that every script may. */
const EXPOSED_HEADERS = [
  'Content-Disposition',
  'ETag',
  'Idempotency-Replayed',
  'Location',
  'Preference-Applied',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'X-Certificate-Signature',
  'X-Request-ID',
  'X-Total-Count',
].join(', ');

export const consumerOrigin = fp(async (app: FastifyInstance, { deps }: { deps: ApiDeps }) => {
  const allowed = new Set(deps.config.consumerAllowedOrigins);
  if (allowed.size === 0) return;

  const originOf = ({ raw }: FastifyRequest): string | undefined => {
    const [origin = '', ...more] = headerLines(raw, 'origin');
    return more.length === 0 && allowed.has(origin) ? origin : undefined;
  };
  // An unknown address counts too, so that a page can read its 404. The preflight comes before that request.
  const isOfConsumers = ({ routeOptions, url }: FastifyRequest): boolean =>
    (routeOptions.url ?? splitAddress(url).path).startsWith(CONSUMER_PATH);
  const isOffered = (url: string | undefined, method: string): boolean =>
    url === undefined
      ? app.supportedMethods.includes(method)
      : app.operations.some((operation) => operation.url === url && operation.method === method);

  app.addHook('onRequest', async (request, reply) => {
    const { url } = request.routeOptions;
    const asked = request.headers['access-control-request-method'];
    if (request.method !== 'OPTIONS' || !isOfConsumers(request) || asked === undefined) return undefined;
    if (originOf(request) === undefined || !isOffered(url, asked)) return undefined;
    return reply
      .headers({
        'Access-Control-Allow-Methods': asked,
        'Access-Control-Allow-Headers': ALLOWED_HEADERS,
        'Access-Control-Max-Age': String(MAX_AGE_SECONDS),
      })
      .code(204)
      .send();
  });

  // On every answer, refusals too: otherwise the page could not read why.
  app.addHook('onSend', async (request, reply) => {
    if (!isOfConsumers(request)) return;
    addVary(reply, request.method === 'OPTIONS' ? 'Origin, Access-Control-Request-Method' : 'Origin');
    const origin = originOf(request);
    if (origin === undefined) return;
    reply.headers({ 'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': EXPOSED_HEADERS });
  });
});

function addVary(reply: FastifyReply, names: string): void {
  const others = reply.getHeader('Vary');
  reply.header('Vary', others === undefined ? names : `${String(others)}, ${names}`);
}
