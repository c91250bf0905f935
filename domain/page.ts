/**
 * Pages of a list (contract §1). Every list is ordered by creation, newest first. A caller pages by offset, or by
 * cursor: the place of the last object of a page, which new objects do not move.
 */

/** Bounds of every paged list. */
export const PAGE = { limitMin: 1, limitMax: 100, limitDefault: 50, offsetMax: 1_000_000 } as const;

/** Matches are counted up to this number; beyond it a list shows no total. */
export const COUNTED_MAX = 10_000;

/** The most lines of a page as CSV. */
export const EXPORT_LINES_MAX = 10_000;

/** The place of an object in its list. */
export type Cursor = { readonly at: Date; readonly id: string };

/** With `after`, the page begins after that place, and `offset` is 0. */
export type Page = { readonly limit: number; readonly offset: number; readonly after?: Cursor | undefined };

/** `total` is null beyond COUNTED_MAX matches. `next` is the place of the last object, null on the last page. */
export type Paged<T> = { readonly items: readonly T[]; readonly total: number | null; readonly next: Cursor | null };

const RADIX = 36;
const CURSOR = /^([0-9a-z]{1,11})-([A-Za-z0-9_-]{1,64})$/;
/** PostgreSQL reads dates up to this year; a cursor never has a later one. */
const LATEST_MS = Date.UTC(9999, 11, 31);
export const CURSOR_LENGTH_MAX = 76;

/** A cursor as callers see it: an opaque text. */
export const cursorText = ({ at, id }: Cursor): string => `${at.getTime().toString(RADIX)}-${id}`;

/** The cursor of a text; undefined when `cursorText` cannot have made it. */
export function parseCursor(text: string): Cursor | undefined {
  const [, time = '', id] = CURSOR.exec(text) ?? [];
  const ms = Number.parseInt(time, RADIX);
  return id === undefined || !(ms <= LATEST_MS) ? undefined : { at: new Date(ms), id };
}
