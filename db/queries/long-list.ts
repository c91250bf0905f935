/**
 * Lists that are longer than the counting limit (contract §1), and can only grow: they need not be counted again. A
 * process remembers them, since ten thousand entries of an index are the most expensive part of a page.
 */
import { createHash } from 'node:crypto';

export type LongLists = {
  has(key: string): boolean;
  add(key: string): void;
};

/** @param sizeMax how many lists are remembered; then the least recently read one is forgotten */
export function createLongLists(sizeMax: number): LongLists {
  const known = new Set<string>();
  const touch = (key: string): void => {
    known.delete(key);
    known.add(key);
  };
  return {
    has: (key) => {
      const isKnown = known.has(key);
      if (isKnown) touch(key);
      return isKnown;
    },
    add: (key) => {
      touch(key);
      const [oldest] = known;
      if (known.size > sizeMax && oldest !== undefined) known.delete(oldest);
    },
  };
}

/** A short key for one organization's list with these filters. */
export const listKey = (orgId: string, selection: Readonly<Record<string, unknown>>): string =>
  createHash('sha256')
    .update(JSON.stringify([orgId, selection]))
    .digest('base64url');
