/**
 * Bodies of provider webhooks. They are kept as the exact bytes that were signed, with any content type. A body is read
 * once the signature's header has its form, and parsed once the signature is verified, as strictly as every other body.
 * Beyond `BODIES_IN_FLIGHT_BYTES_MAX` the oldest one that is still being read is ended: a provider sends its body in a
 * moment, and who holds one back is no provider.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { DomainError } from '../../domain/error.ts';
import { parseJsonBody } from '../http/json-body.ts';
import { type ReadSignature, requireMatch } from '../http/provider-signature.ts';
import { whenOver } from '../http/request-end.ts';

/** More than other bodies may have, because providers send batches. */
export const SIGNED_BODY_BYTES_MAX = 256 * 1024;
/** Of all bodies that are being read, by the length that they declare, and of those that are not answered yet. */
export const BODIES_IN_FLIGHT_BYTES_MAX = 32 * 1024 * 1024;

/** Applies only to the routes of the surrounding `register` call. Hooks of routes come after these. */
export function acceptSignedBodies(app: FastifyInstance): void {
  const sizes = new Map<FastifyRequest, number>();
  const reading = new Set<FastifyRequest>();
  let inFlight = 0;
  const release = (request: FastifyRequest): void => {
    inFlight -= sizes.get(request) ?? 0;
    sizes.delete(request);
    reading.delete(request);
  };
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: SIGNED_BODY_BYTES_MAX }, (request, body, done) => {
    request.rawBody = Buffer.isBuffer(body) ? body : Buffer.from(body);
    done(null, undefined);
  });
  app.addHook('preParsing', (request, reply, payload, done) => {
    // Fastify would refuse a malformed content type, and the evidence in the body would be lost.
    delete request.headers['content-type'];
    const size = Math.min(Number(request.headers['content-length'] ?? SIGNED_BODY_BYTES_MAX), SIGNED_BODY_BYTES_MAX);
    for (const oldest of reading) {
      if (inFlight + size <= BODIES_IN_FLIGHT_BYTES_MAX) break;
      release(oldest);
      oldest.raw.socket.destroy();
    }
    if (inFlight + size > BODIES_IN_FLIGHT_BYTES_MAX) return done(new DomainError('temporarily_unavailable'));
    sizes.set(request, size);
    reading.add(request);
    inFlight += size;
    whenOver(request.raw, reply.raw, () => release(request));
    done(null, payload);
  });
  app.addHook('preValidation', (request, _reply, done) => {
    reading.delete(request);
    done();
  });
}

/**
 * The hooks of a signed route.
 *
 * @param read reads the signature's headers; throws DomainError `signature_invalid`
 */
export function verifyThenParse(read: (request: FastifyRequest) => ReadSignature, secrets: readonly string[]) {
  const signatures = new WeakMap<FastifyRequest, ReadSignature>();
  return {
    onRequest: async (request: FastifyRequest): Promise<void> => {
      signatures.set(request, read(request));
    },
    preValidation: async (request: FastifyRequest): Promise<void> => {
      const signature = signatures.get(request);
      if (!signature) throw new DomainError('signature_invalid');
      requireMatch(signature, request.rawBody, secrets);
      request.parsedBody = request.rawBody.length === 0 ? undefined : parseJsonBody(request.rawBody);
      request.body = request.parsedBody;
    },
  };
}
