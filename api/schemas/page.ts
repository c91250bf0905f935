/** The queries of lists: their pages and their filters (contract §1). */
import { z } from 'zod';
import { CURSOR_LENGTH_MAX, type Cursor, PAGE, parseCursor } from '../../domain/page.ts';
import { abort, text } from './common.ts';
import { rule } from './rule.ts';

/** An integer in a query string; `int_parsing` if it is not an integer, or given more than once. */
const queryInteger = (min: number, max: number, fallback: number, description: string) =>
  z
    .unknown()
    .transform((value, context) => {
      const parsed = typeof value === 'string' && /^-?[0-9]+$/.test(value) ? Number(value) : Number.NaN;
      const fault = (type: string, message: string) => {
        context.addIssue({ code: 'custom', message, params: { type } });
        return z.NEVER;
      };
      if (Number.isNaN(parsed))
        return fault('int_parsing', 'Input should be a valid integer, unable to parse string as an integer');
      if (parsed < min) return fault('greater_than_equal', `Input should be greater than or equal to ${min}`);
      if (parsed > max) return fault('less_than_equal', `Input should be less than or equal to ${max}`);
      return parsed;
    })
    .default(fallback)
    .meta({ description, override: { type: 'integer', minimum: min, maximum: max, default: fallback } });

/** A filter that can be given several times; an object matches when one of the values does. */
export const repeatable = <const Value extends string>(value: z.ZodEnum<Record<Value, Value>>, description: string) =>
  z
    .preprocess((given) => (Array.isArray(given) ? given : [given]), z.array(value).max(value.options.length))
    .optional()
    .meta({ description });

/** PostgreSQL and JavaScript write the dates of these years alike. */
const EARLIEST_MS = Date.UTC(1970, 0, 1);
const LATEST_MS = Date.UTC(10_000, 0, 1) - 1;

/** An RFC 3339 date and time, with any offset. Parts of a millisecond are left out. */
export const moment = (dateOf = (value: string): Date => new Date(value)) =>
  z.iso
    .datetime({
      offset: true,
      abort,
      error: 'must be an RFC 3339 date and time with its zone, such as 2026-11-21T08:00:00Z',
    })
    .transform(dateOf)
    .refine((value) => value.getTime() >= EARLIEST_MS && value.getTime() <= LATEST_MS, {
      error: 'must be a date from 1970 to 9999',
    });

const PART_OF_MILLISECOND = /\.\d{3}\d*[1-9]/;

/** Objects are created at whole milliseconds, so a bound is rounded up to the next one. */
const bound = () =>
  moment((value) => {
    const date = new Date(value);
    return PART_OF_MILLISECOND.test(value) ? new Date(Math.min(date.getTime() + 1, LATEST_MS)) : date;
  });

export const createdFrom = () =>
  bound().optional().meta({ description: 'Only objects that were created then or later (RFC 3339).' });
export const createdTo = () =>
  bound().optional().meta({ description: 'Only objects that were created before then (RFC 3339).' });

/** A cursor from the `Link` of the page before. */
const cursor = () =>
  text(1, CURSOR_LENGTH_MAX)
    .transform((value, context): Cursor => {
      const parsed = parseCursor(value);
      if (parsed) return parsed;
      context.addIssue({ code: 'custom', message: 'must be the cursor of a `next` link' });
      return z.NEVER;
    })
    .meta({
      description:
        'Opaque, from the `next` link of a page. It stays valid while objects are added, and every page is equally fast.',
    });

const place = {
  offset: queryInteger(0, PAGE.offsetMax, 0, 'How many objects to skip. `after` is faster for far pages.'),
  after: cursor().optional(),
};

/** `limit` and `offset` or `after` of every list. A list with filters extends it by `safeExtend`. */
export const PageQuery = z
  .strictObject({
    limit: queryInteger(PAGE.limitMin, PAGE.limitMax, PAGE.limitDefault, 'The most objects of a page.'),
    ...place,
  })
  .check(
    rule(z.object(place), ({ offset, after }, context) => {
      if (after !== undefined && offset !== 0)
        context.addIssue({ code: 'custom', path: ['after'], message: 'cannot be combined with an offset' });
    }),
  );

/** An id to select by. One that no object has selects nothing. */
export const selectedId = (max: number, description: string) => text(1, max).optional().meta({ description });
