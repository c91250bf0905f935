/**
 * The files that pages load; all of them are served by this service. The address of a file contains a digest of its
 * bytes: a browser may cache it permanently, and sees a new version at once.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type Compressible, compressible } from '../http/compression.ts';

export const ASSETS_PATH = '/assets';

export type Asset = Compressible & {
  /** For example `style-9f86d081884c7d65.css`. */
  readonly name: string;
  readonly type: string;
};

export type Assets = { readonly style: Asset; readonly icon: Asset; readonly copy: Asset };

/** A check mark, readable at 16 pixels on dark and on light backgrounds. */
const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0b5d66"/>' +
  '<path d="M8 17l6 6 10-13" fill="none" stroke="#fff" stroke-width="4" stroke-linecap="round" ' +
  'stroke-linejoin="round"/></svg>';

export const readStyle = (): Promise<Buffer> => readFile(new URL('./style.css', import.meta.url));

/** Reads every file that pages load. */
export async function loadAssets(): Promise<Assets> {
  const [style, copy] = await Promise.all([readStyle(), readFile(new URL('./copy.js', import.meta.url))]);
  return {
    style: asset('style', 'css', 'text/css; charset=utf-8', style),
    copy: asset('copy', 'js', 'text/javascript; charset=utf-8', copy),
    icon: asset('icon', 'svg', 'image/svg+xml', Buffer.from(ICON)),
  };
}

/** The address of a file. */
export const addressOf = (file: Asset): string => `${ASSETS_PATH}/${file.name}`;

function asset(noun: string, extension: string, type: string, bytes: Buffer): Asset {
  const digest = createHash('sha256').update(bytes).digest('hex').slice(0, 16);
  return { name: `${noun}-${digest}.${extension}`, type, ...compressible(bytes) };
}
