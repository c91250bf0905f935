/** How pages and their files are sent: each with the policy that lets the browser do what the page needs, and no more. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Asset } from './asset.ts';

const NOTHING_ELSE = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Our stylesheet and images; no script at all. */
export const PAGE_POLICY = `${NOTHING_ELSE}; style-src 'self'; img-src 'self' data:`;

/** The reference draws itself: its one script from here, styles that it sets on elements, and the document that it shows. */
export const REFERENCE_POLICY = `${NOTHING_ELSE}; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data: blob:; font-src 'self' data:`;

/** A name that is a digest never gets other bytes. */
const ASSET_CACHE_CONTROL = 'public, max-age=31536000, immutable';

export const sendPage = (reply: FastifyReply, html: string, policy: string = PAGE_POLICY): FastifyReply =>
  reply.header('Content-Security-Policy', policy).type('text/html; charset=utf-8').send(html);

export async function sendAsset(request: FastifyRequest, reply: FastifyReply, asset: Asset): Promise<FastifyReply> {
  reply.header('Cache-Control', ASSET_CACHE_CONTROL).header('Vary', 'Accept-Encoding').type(asset.type);
  if (!/\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(request.headers['accept-encoding'] ?? ''))
    return reply.send(asset.bytes);
  return reply.header('Content-Encoding', 'gzip').send(await asset.compressed());
}
