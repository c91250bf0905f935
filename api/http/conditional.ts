/** Answers with an ETag, and `If-None-Match` (RFC 9110 §13.1.2). */
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** The JSON schema of the header, which the generator of the OpenAPI document turns into a header object. */
export const ETAG_HEADER = { type: 'string', description: 'The SHA-256 of the bytes, in hex.' } as const;

/** A JSON answer. */
export type TaggedJson = { readonly body: string | Buffer; readonly etag: string };

/** Bytes with their digest. A compressed form has other bytes, and so another tag. */
export const tagged = (body: string | Buffer): TaggedJson => ({
  body,
  etag: `"${createHash('sha256').update(body).digest('hex')}"`,
});

/** The answer is text, because Node writes it together with the headers. */
export const taggedJson = (value: unknown): TaggedJson => tagged(JSON.stringify(value));

/** For an answer that is made once: all callers are sent the same bytes, and none is sent a copy. */
export function sharedJson(value: unknown): TaggedJson {
  const { body, etag } = taggedJson(value);
  return { body: Buffer.from(body), etag };
}

/** Sends the answer, or 304 to a read by a caller that already has it. */
export function sendTagged(request: FastifyRequest, reply: FastifyReply, { body, etag }: TaggedJson): FastifyReply {
  reply.header('ETag', etag);
  if (request.method === 'GET' && namesTag(request.headers['if-none-match'], etag)) return reply.code(304).send();
  return reply.type('application/json; charset=utf-8').send(body);
}

/** Whether the header names this tag: as one of a list, weak or strong, or by `*`. */
export function namesTag(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = (ifNoneMatch ?? '').split(',').map((tag) => tag.trim());
  return tags.includes('*') || tags.some((tag) => tag.replace(/^W\//, '') === etag);
}
