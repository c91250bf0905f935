/** Bytes that are made once and sent often, also compressed, to callers that accept it (RFC 9110 §12.5.3). */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';

export type Compressible = {
  readonly bytes: Buffer;
  /** By gzip, once, at the first call. */
  readonly compressed: () => Promise<Buffer>;
};

export function compressible(bytes: Buffer): Compressible {
  let compressed: Promise<Buffer> | undefined;
  return {
    bytes,
    compressed: () => {
      compressed ??= promisify(gzip)(bytes);
      return compressed;
    },
  };
}

/** Whether the caller takes gzip. */
export const takesGzip = ({ headers }: FastifyRequest): boolean =>
  /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(headers['accept-encoding'] ?? '');

/** Sends the bytes as the caller takes them. All callers are sent the same ones, and none is sent a copy. */
export async function sendCompressible(
  request: FastifyRequest,
  reply: FastifyReply,
  { bytes, compressed }: Compressible,
): Promise<FastifyReply> {
  reply.hasSharedBody = true;
  reply.header('Vary', 'Accept-Encoding');
  if (!takesGzip(request)) return reply.send(bytes);
  return reply.header('Content-Encoding', 'gzip').send(await compressed());
}
