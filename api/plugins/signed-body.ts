/**
 * Bodies of provider webhooks. They are kept as the exact bytes that were signed, with any content type. They are
 * parsed after the signature is verified, as strictly as every other body.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { parseJsonBody } from '../http/json-body.ts';

/** More than other bodies may have, because providers send batches. */
const SIGNED_BODY_BYTES_MAX = 256 * 1024;

/** Applies only to the routes of the surrounding `register` call. */
export function acceptSignedBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: SIGNED_BODY_BYTES_MAX }, (request, body, done) => {
    request.rawBody = Buffer.isBuffer(body) ? body : Buffer.from(body);
    done(null, undefined);
  });
}

/**
 * The hook of a signed route.
 *
 * @param verify throws DomainError `signature_invalid`
 */
export const verifyThenParse = (verify: (request: FastifyRequest) => void) => async (request: FastifyRequest) => {
  verify(request);
  request.parsedBody = request.rawBody.length === 0 ? undefined : parseJsonBody(request.rawBody);
  request.body = request.parsedBody;
};
