/** Forms and bounds that requests and answers share (contract §1, §2). */
import countries from 'i18n-iso-countries';
import { isPossiblePhoneNumber } from 'libphonenumber-js/min';
import { z } from 'zod';
import { CORRIDOR_IDS, RAILS } from '../../domain/corridor.ts';
import { ERROR_CODES } from '../../domain/error.ts';
import { CURRENCIES, MONEY_PATTERN, MONEY_TEXT_LENGTH_MAX } from '../../domain/money.ts';
import { CURSOR_LENGTH_MAX, type Cursor, PAGE, parseCursor } from '../../domain/page.ts';
import { ENVIRONMENT_NAMES } from '../../domain/runtime.ts';

const CONTROL_CHARACTER = /\p{Cc}/u;

/** The rule for every string. Without it NUL and lone surrogates would pass zod, and PostgreSQL would fail. */
const isClean = (value: string): boolean =>
  value.isWellFormed() && !CONTROL_CHARACTER.test(value) && value === value.normalize('NFC') && value === value.trim();

/** After the first fault of a value its other checks are skipped, as in FastAPI. */
const abort = true;

/** Text of `min` to `max` characters: well-formed, NFC, trimmed, without control characters. */
export const text = (min: number, max: number) =>
  z
    .string()
    .min(min, { abort })
    .max(max, { abort })
    .refine(isClean, { error: 'must be trimmed Unicode NFC text without control characters', abort });

/** As `text`, for a value that a regular expression describes completely. */
export const pattern = (expression: RegExp, min: number, max: number) =>
  z.string().min(min, { abort }).max(max, { abort }).regex(expression, { abort });

export const EXAMPLE_ID = '019ad3f0-5c1b-7d3e-9a6f-0d5a7c1e2b41';
export const EXAMPLE_SETTLEMENT_ID = 'stl_3nqh5w6zsv4y2m7k4d6a5c2b7e4f3g2h';

const ID_LENGTH_MAX = 36;
const SETTLEMENT_ID_LENGTH_MAX = 64;
export const id = () => text(1, ID_LENGTH_MAX).meta({ example: EXAMPLE_ID });
export const settlementId = () => text(1, SETTLEMENT_ID_LENGTH_MAX).meta({ example: EXAMPLE_SETTLEMENT_ID });

/** An id in an answer. The service made it, so that the document shows only its form. */
export const objectId = () => z.string().meta({ example: EXAMPLE_ID });

/** A decimal string in major units. The allowed amounts depend on the currency and are checked together with it. */
export const money = () => pattern(MONEY_PATTERN, 1, MONEY_TEXT_LENGTH_MAX).meta({ example: '250.00' });

export const corridor = () => z.enum(CORRIDOR_IDS).meta({ example: 'US-JM' });
export const rail = () => z.enum(RAILS).meta({ example: 'bank_transfer' });
export const currency = () => z.enum(CURRENCIES);

export const country = () =>
  z
    .string()
    .regex(/^[A-Z]{2}$/, { abort })
    .refine((value) => countries.isValid(value), { error: 'must be an ISO 3166-1 alpha-2 country code' })
    .meta({ example: 'JM' });

const EMAIL_LENGTH_MAX = 254;
const isEmail = (value: string): boolean => z.email().safeParse(value).success;
export const email = () =>
  text(3, EMAIL_LENGTH_MAX)
    .refine(isEmail, { error: 'must be an e-mail address' })
    .meta({ format: 'email', example: 'ops@acme.example' });

const PHONE_LENGTH_MIN = 8;
const PHONE_LENGTH_MAX = 16;
/** Checks the country code and the length. Assigned number ranges change too often to be checked. */
export const phone = () =>
  pattern(/^\+[1-9][0-9]{6,14}$/, PHONE_LENGTH_MIN, PHONE_LENGTH_MAX)
    .refine((value) => isPossiblePhoneNumber(value), { error: 'must be an E.164 phone number' })
    .meta({ example: '+18765550123' });

/**
 * A field that may be absent or null; both are read as undefined. Clients whose models have every field send null for
 * the fields that they leave out. `.optional()` in contrast refuses null.
 */
export const nullAsAbsent = <Schema extends z.ZodType>(schema: Schema) =>
  schema.nullish().transform((value) => value ?? undefined);

/**
 * Counts the entries of a list or an object before any of them is validated: 64 KiB hold thousands, and each would cost
 * time and a fault.
 */
export const bounded = <Schema extends z.ZodType>(
  max: number,
  fault: { type: string; message: string },
  schema: Schema,
) =>
  z.preprocess((value, context) => {
    if (typeof value !== 'object' || value === null || Object.keys(value).length <= max) return value;
    context.addIssue({ code: 'custom', message: fault.message, params: { type: fault.type } });
    return z.NEVER;
  }, schema);

/** A list of at most `max` entries. */
export const list = <Item extends z.ZodType>(min: number, max: number, item: Item) => {
  const message = `List should have at most ${max} item${max === 1 ? '' : 's'}`;
  return bounded(max, { type: 'too_long', message }, z.array(item).min(min, { abort }).max(max));
};

const METADATA_KEYS_MAX = 20;
export const metadata = () =>
  bounded(
    METADATA_KEYS_MAX,
    { type: 'value_error', message: `Value error, must have at most ${METADATA_KEYS_MAX} keys` },
    z.record(pattern(/^[A-Za-z0-9_.-]+$/, 1, 40), text(0, 500)).meta({ maxProperties: METADATA_KEYS_MAX }),
  ).meta({ example: { invoice: 'INV-1042' } });

export const environment = () => z.enum(ENVIRONMENT_NAMES).meta({ example: 'local sandbox' });
export const timestamp = () => z.iso.datetime().meta({ example: '2026-11-21T08:00:00.000Z' });

/** An integer in a query string; `int_parsing` if it is not an integer, or given more than once. */
const queryInteger = (min: number, max: number, fallback: number) =>
  z
    .unknown()
    .transform((value, context) => {
      const parsed = typeof value === 'string' && /^-?[0-9]{1,15}$/.test(value) ? Number(value) : Number.NaN;
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
    .meta({ override: { type: 'integer', minimum: min, maximum: max, default: fallback } });

/** A filter that can be given several times; an object matches when one of the values does. */
export const repeatable = <const Value extends string>(values: readonly Value[], description: string) =>
  z
    .unknown()
    .transform((value) => (Array.isArray(value) ? value : [value]))
    .pipe(z.array(z.enum(values)).max(values.length))
    .optional()
    .meta({ description, override: { type: 'array', items: { type: 'string', enum: [...values] } } });

/** PostgreSQL and JavaScript write the dates of these years alike. */
const EARLIEST_MS = Date.UTC(1970, 0, 1);
const LATEST_MS = Date.UTC(9999, 11, 31);

/** An RFC 3339 date and time, with any offset. */
export const moment = () =>
  z.iso
    .datetime({ offset: true, abort })
    .transform((value) => new Date(value))
    .refine((value) => value.getTime() >= EARLIEST_MS && value.getTime() <= LATEST_MS, {
      error: 'must be a date from 1970 to 9999',
    });

export const createdFrom = () =>
  moment().optional().meta({ description: 'Only objects that were created then or later (RFC 3339).' });
export const createdTo = () =>
  moment().optional().meta({ description: 'Only objects that were created before then (RFC 3339).' });

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
        'Opaque. The `next` link of a page has it, unless the request has an `offset`. It stays valid while objects ' +
        'are added, and every page is equally fast.',
    });

/** `limit` and `offset` or `after` of every list. A list with filters extends it by `safeExtend`. */
export const PageQuery = z
  .strictObject({
    limit: queryInteger(PAGE.limitMin, PAGE.limitMax, PAGE.limitDefault),
    offset: queryInteger(0, PAGE.offsetMax, 0),
    after: cursor().optional(),
  })
  .superRefine(({ offset, after }, context) => {
    if (after !== undefined && offset !== 0)
      context.addIssue({ code: 'custom', path: ['after'], message: 'cannot be combined with an offset' });
  });

/** The pages of a consumer's list have a fixed size (specification). */
export const CursorQuery = z.strictObject({ after: cursor().optional() });

/** FastAPI's shape, without any difference (contract §2). */
export const ValidationErrorItem = z
  .object({ loc: z.array(z.union([z.string(), z.int()])), msg: z.string(), type: z.string() })
  .meta({ id: 'ValidationError', example: { loc: ['body', 'amount'], msg: 'Field required', type: 'missing' } });
export const HTTPValidationError = z
  .object({ detail: z.array(ValidationErrorItem) })
  .meta({ id: 'HTTPValidationError' });

/** RFC 9457. Some codes have further members (contract §2). */
export const Problem = z
  .looseObject({
    type: z.string().meta({ example: '/problems/not_found' }),
    title: z.string().meta({ example: 'Not found' }),
    status: z.int().meta({ example: 404 }),
    detail: z.string().meta({ example: 'There is no such object in your organization.' }),
    instance: z.string().meta({ example: '/v2/settle/stl_unknown' }),
    code: z.enum(ERROR_CODES),
    request_id: objectId(),
  })
  .meta({ id: 'Problem' });
