/** Sends pages and their files. Each page has a Content-Security-Policy that allows only what the page needs. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Compressible, sendCompressible } from '../http/compression.ts';
import type { Asset } from './asset.ts';
import { preferredType } from './negotiation.ts';

/** Denies everything that a page's own policy does not allow. */
export const DENY_OTHERS = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Allows our stylesheet, our images and our script. */
const PAGE_POLICY = `${DENY_OTHERS}; script-src 'self'; style-src 'self'; img-src 'self'`;

/** Allows the search form too. */
export const REFERENCE_POLICY = PAGE_POLICY.replace("form-action 'none'", "form-action 'self'");

/** The name of an asset contains the digest of its bytes, so that its bytes never change. */
const ASSET_CACHE_CONTROL = 'public, max-age=31536000, immutable';

export const sendPage = (reply: FastifyReply, html: string, policy: string = PAGE_POLICY): FastifyReply =>
  reply.header('Content-Security-Policy', policy).type('text/html; charset=utf-8').send(html);

export const sendText = (reply: FastifyReply, text: string, type: 'text/markdown' | 'text/plain'): FastifyReply =>
  reply.type(`${type}; charset=utf-8`).send(text);

/** Whether a person asks: the caller prefers a page to a problem. */
export const prefersPage = ({ method, headers }: FastifyRequest): boolean =>
  method === 'GET' && preferredType(headers.accept, ['application/problem+json', 'text/html']) === 'text/html';

/** Sends a page that is the same for everyone, compressed for who takes that. */
export const sendSharedPage = (
  request: FastifyRequest,
  reply: FastifyReply,
  page: Compressible,
): Promise<FastifyReply> =>
  sendCompressible(
    request,
    reply.header('Content-Security-Policy', REFERENCE_POLICY).type('text/html; charset=utf-8'),
    page,
  );

export const sendAsset = (request: FastifyRequest, reply: FastifyReply, asset: Asset): Promise<FastifyReply> =>
  sendCompressible(request, reply.header('Cache-Control', ASSET_CACHE_CONTROL).type(asset.type), asset);
