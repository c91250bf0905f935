/** Forms and bounds that requests and answers share (contract §1, §2). */
import { z } from 'zod';
import { CORRIDOR_IDS, RAILS } from '../../domain/corridor.ts';
import type { FieldFault } from '../../domain/error.ts';
import { CURRENCIES, MONEY_PATTERN, MONEY_TEXT_LENGTH_MAX } from '../../domain/money.ts';
import { INPUT_METHODS, PAYMENT_METHODS } from '../../domain/payment-method.ts';
import { ENVIRONMENT_NAMES } from '../../domain/runtime.ts';

const CONTROL_CHARACTER = /\p{Cc}/u;

/** The rule for every string. Without it NUL and lone surrogates would pass zod, and PostgreSQL would fail. */
const isClean = (value: string): boolean =>
  value.isWellFormed() && !CONTROL_CHARACTER.test(value) && value === value.normalize('NFC') && value === value.trim();

/** Adds faults that rules of the domain have found to those of the form. */
export function addFaults(faults: readonly FieldFault[], context: z.core.$RefinementCtx): void {
  for (const { field, rule } of faults)
    context.addIssue({ code: 'custom', path: field?.split('.') ?? [], message: rule });
}

/** After the first fault of a value its other checks are skipped, as in FastAPI. */
export const abort = true;

/**
 * The rule as a pattern of the document, which has every part of it but the normal form. Every common dialect of
 * regular expressions reads it alike.
 */
export const TEXT_PATTERN =
  '^[^\\s\\x00-\\x1f\\x7f-\\x9f\\ufeff]([^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f\\ufeff])?$';
export const OPTIONAL_TEXT_PATTERN = TEXT_PATTERN.replace(/^\^(.*)\$$/, '^($1)?$');

/**
 * What shows nothing, or changes the direction of what is shown: two names would look alike, or one would look like
 * something else. The second part is beyond what the document's dialect of patterns can name.
 */
const UNSEEN =
  '\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f' +
  '\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb';
const UNSEEN_CHARACTER = new RegExp(
  `[${UNSEEN}\\u{13430}-\\u{1343f}\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]`,
  'u',
);
export const VISIBLE_TEXT_PATTERN = TEXT_PATTERN.replaceAll('\\x7f-\\x9f', `\\x7f-\\x9f${UNSEEN}`);

/** JSON Schema counts characters, and JavaScript the units of UTF-16, of which some characters have two. */
const hasAtMost = (max: number) => (context: z.core.ParsePayload<string>) => {
  const { value } = context;
  if (value.length <= max || (value.length <= 2 * max && [...value].length <= max)) return;
  context.issues.push({
    code: 'too_big',
    origin: 'string',
    maximum: max,
    inclusive: true,
    input: value,
    continue: false,
  });
};

/** Text of `min` to `max` characters: well-formed, NFC, trimmed, without control characters. */
export const text = (min: number, max: number) =>
  z
    .string()
    .min(min, { abort })
    .check(hasAtMost(max))
    .refine(isClean, { error: 'must be trimmed Unicode NFC text without control characters', abort })
    .meta({ maxLength: max, pattern: min === 0 ? OPTIONAL_TEXT_PATTERN : TEXT_PATTERN });

/** As `text`, for names and references, which people compare by eye (contract §1). */
export const visibleText = (min: number, max: number) =>
  text(min, max)
    .refine((value) => !UNSEEN_CHARACTER.test(value), {
      error: 'must have no invisible character and none that changes the direction of writing',
      abort,
    })
    .meta({ pattern: VISIBLE_TEXT_PATTERN });

/**
 * As `text`, for a value that a regular expression describes completely.
 *
 * @param form completes the sentence "the value should be …", which people read instead of the expression
 */
export const pattern = (expression: RegExp, [min, max]: readonly [min: number, max: number], form: string) =>
  z.string().min(min, { abort }).max(max, { abort }).regex(expression, { abort, error: form });

export const EXAMPLE_ID = '019ad3f0-5c1b-7d3e-9a6f-0d5a7c1e2b41';
export const EXAMPLE_SETTLEMENT_ID = 'stl_3nqh5w6zsv4y2m7k4d6a5c2b7e4f3g2h';

/**
 * A named component of the document. Clients get one type for it, wherever it is used; a property with the same values
 * adds its own description by `.meta`.
 */
export const closedEnum = <const Value extends string>(
  id: string,
  values: readonly Value[],
  description: string,
  example?: NoInfer<Value>,
) => z.enum(values).meta({ id, description, ...(example !== undefined && { example }) });

/** Ends the description of an enumeration of which answers may have further values. */
export const MAY_GROW = 'May grow.';

/** As `closedEnum`, for values that answers have. They may grow (contract §1), and the document says so. */
export const openEnum = <const Value extends string>(
  id: string,
  values: readonly Value[],
  description: string,
  example?: NoInfer<Value>,
) => closedEnum(id, values, `${description} ${MAY_GROW}`, example);

export const ID_LENGTH_MAX = 36;
export const SETTLEMENT_ID_LENGTH_MAX = 64;

/** An id has bounds and no form: another text of the allowed length is an unknown id, so that it is 404. */
export const id = (description: string) => text(1, ID_LENGTH_MAX).meta({ description, example: EXAMPLE_ID });
/** Every body may name the caller's organization, and none must. */
export const ownOrganization = () =>
  nullAsAbsent(id('')).meta({ description: 'Redundant: the organization of the key, or absent.' });
export const settlementId = (description = 'The settlement.') =>
  text(1, SETTLEMENT_ID_LENGTH_MAX).meta({ description, example: EXAMPLE_SETTLEMENT_ID });

/** An id in an answer. The service made it, so that the document shows only its form. */
export const objectId = (description: string) => z.string().meta({ description, example: EXAMPLE_ID });
export const shownSettlementId = (description = 'The settlement.') =>
  z.string().meta({ description, example: EXAMPLE_SETTLEMENT_ID });

/** Every currency of the service has two minor digits. No amount has more than five digits before them or is 0. */
export const AMOUNT_PATTERN = '^[1-9][0-9]{0,4}([.][0-9]{1,2})?$';

const MONEY_FORM = 'a decimal string such as 1200.00';

/** A decimal string in major units. The allowed amounts depend on the currency and are checked together with it. */
export const money = (description: string, example = '250.00') =>
  pattern(MONEY_PATTERN, [1, MONEY_TEXT_LENGTH_MAX], MONEY_FORM).meta({
    description,
    pattern: AMOUNT_PATTERN,
    example,
  });

export const moneyOrNull = (description: string) =>
  pattern(MONEY_PATTERN, [1, MONEY_TEXT_LENGTH_MAX], MONEY_FORM).nullable().meta({ description, example: null });

const Corridor = openEnum(
  'CorridorId',
  CORRIDOR_IDS,
  'A corridor: the source country and the destination country.',
  'US-JM',
);
const PayoutRail = openEnum('PayoutRail', RAILS, 'How the recipient is paid.', 'bank_transfer');
const CurrencyCode = openEnum('Currency', CURRENCIES, 'A currency (ISO 4217).');
const Environment = closedEnum(
  'Environment',
  ENVIRONMENT_NAMES,
  'The runtime environment that answered.',
  'local sandbox',
);
const PaymentMethod = closedEnum('PaymentMethod', INPUT_METHODS, 'How the payer pays.', 'card');
const SettlementPaymentMethod = openEnum(
  'SettlementPaymentMethod',
  PAYMENT_METHODS,
  'How a settlement is paid. `internal`: funded by `/v1/caribbean/settle`, without an input fee.',
);

export const corridor = () => Corridor;
export const rail = (description = 'How the recipient is paid.') => PayoutRail.meta({ description });
export const currency = (description: string, example = 'USD') => CurrencyCode.meta({ description, example });
export const environment = (description = 'The runtime environment that answered.') =>
  Environment.meta({ description });
export const paymentMethod = (description = 'How the payer pays.') => PaymentMethod.meta({ description });
export const settlementPaymentMethod = (description = 'How the settlement is paid.') =>
  SettlementPaymentMethod.meta({ description });

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
const METADATA_DESCRIPTION = 'Your own keys and values. The service only stores them.';
const metadataRule = () =>
  bounded(
    METADATA_KEYS_MAX,
    { type: 'value_error', message: `Value error, must have at most ${METADATA_KEYS_MAX} keys` },
    z
      .record(pattern(/^[A-Za-z0-9_.-]+$/, [1, 40], 'letters, digits, dots, hyphens and underscores'), text(0, 500))
      .meta({ maxProperties: METADATA_KEYS_MAX }),
  ).meta({ description: METADATA_DESCRIPTION, example: { invoice: 'INV-1042' } });
const Metadata = metadataRule().meta({ id: 'Metadata' });
const StoredMetadata = z
  .record(z.string(), z.string())
  .meta({ id: 'StoredMetadata', description: METADATA_DESCRIPTION, example: { invoice: 'INV-1042' } });

export const metadata = (description = METADATA_DESCRIPTION) => Metadata.meta({ description });
/** In a query each entry is a parameter of its own: `metadata[invoice]=INV-1042`. */
export const metadataFilter = (description: string) => metadataRule().optional().meta({ description });
export const shownMetadata = () => StoredMetadata.meta({ description: METADATA_DESCRIPTION });

export const timestamp = (description: string) =>
  z.iso.datetime().meta({ description, example: '2026-11-21T08:00:00.000Z' });
export const timestampOrNull = (description: string) =>
  z.iso.datetime().nullable().meta({ description, example: '2026-11-21T08:00:00.000Z' });
export const createdAt = () => timestamp('When it was created.');
export const updatedAt = () => timestamp('When it was last changed.');

/** A value that never differs. Clients may compare it, so that it says what it promises. */
export const constant = <const Value extends string | number | boolean>(value: Value, description: string) =>
  z.literal(value).meta({ description });
export const simulation = () => constant(true, 'No money moves: this is a simulation.');

/** Of the document only: what HTTP does not allow in a header is 400 before any operation is known. */
export const HEADER_PATTERN = '^[^\\x00-\\x08\\x0a-\\x1f\\x7f]*$';
/** A header of a request. */
export const headerText = (description: string, example?: string) =>
  z.string().meta({ description, pattern: HEADER_PATTERN, ...(example === undefined ? {} : { example }) });

/** For operations whose answers have a tag. A loose object, because every request has other headers too. */
export const Conditions = z.looseObject({
  'if-none-match': headerText('If it contains the `ETag` of the current answer, the answer is 304.').optional(),
});

/** Text of an answer. */
export const outputText = (description: string, example: string) => z.string().meta({ description, example });
/** Text of an answer that can be null. The example is a value, or null where null is usual. */
export const outputTextOrNull = (description: string, example: string | null) =>
  z.string().nullable().meta({ description, example });
export const fxRate = () =>
  outputText('Destination currency for one unit of the source currency. Six decimals.', '157.250000');
export const flag = (description: string) => z.boolean().meta({ description });

/** An optional boolean of a query, where it is one of two texts. */
export const queryFlag = (description: string) =>
  z
    .enum(['true', 'false'])
    .transform((value) => value === 'true')
    .optional()
    .meta({
      description,
      override: ({ jsonSchema }) => {
        delete jsonSchema.enum;
        jsonSchema.type = 'boolean';
      },
    });

/** FastAPI's shape, without any difference (contract §2). */
export const ValidationErrorItem = z
  .object({ loc: z.array(z.union([z.string(), z.int()])), msg: z.string(), type: z.string() })
  .meta({ id: 'ValidationError', example: { loc: ['body', 'amount'], msg: 'Field required', type: 'missing' } });
export const HTTPValidationError = z
  .object({ detail: z.array(ValidationErrorItem) })
  .meta({ id: 'HTTPValidationError' });
