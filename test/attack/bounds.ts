/**
 * The bounds of every field of a request, derived from the OpenAPI document: for each bound a value that just fits and
 * one that just does not. A word of JSON Schema that this file cannot test is an error, so that no field is left out.
 */
import { HEADER_PATTERN, OPTIONAL_TEXT_PATTERN, TEXT_PATTERN, VISIBLE_TEXT_PATTERN } from '../../api/schemas/common.ts';
import { cursorText } from '../../domain/page.ts';
import { bare, type DescribedOperation, type Schema, sampleOf } from './document.ts';

/** The place of a value in a request: `['body', 'signers', 0, 'label']`, `['query', 'limit']`. */
export type Place = readonly [part: string, ...(readonly (string | number)[])];

export type Field = { readonly place: Place; readonly bounds: readonly Bound[] };

export type Bound = {
  /** `maxLength 140`. */
  readonly rule: string;
  readonly place: Place;
  /** Where the fault of `outside` is. */
  readonly at: Place;
  /** The types that its fault may have. */
  readonly types: readonly string[];
  /** Fits this bound. Undefined where another value of the table shows it. */
  readonly inside?: unknown;
  /** Just does not. Undefined: the field is left out. */
  readonly outside: unknown;
};

type Case = Omit<Bound, 'place' | 'at'> & { readonly below?: string };

const TESTED = [
  ...['type', 'properties', 'required', 'additionalProperties', 'maxProperties', 'propertyNames', 'items', 'minItems'],
  ...['maxItems', 'enum', 'pattern', 'format', 'minLength', 'maxLength', 'minimum', 'maximum'],
];
/** These say nothing about the value. */
const ANNOTATIONS = ['description', 'example', 'default', 'title'];

/** Longer patterns are not part of a test's name. */
const RULE_LENGTH_MAX = 40;

const SURPRISE = 'surprise';
const PATTERN_FAULTS = ['string_pattern_mismatch', 'value_error'];
const TYPE_FAULTS: Readonly<Record<string, readonly string[]>> = {
  string: ['string_type', 'enum'],
  integer: ['int_type', 'int_parsing'],
  boolean: ['bool_type', 'enum'],
  array: ['list_type'],
  object: ['dict_type'],
};

/** @throws Error for a field whose bounds cannot be tested */
export function fieldsOf({ parameters, body, bodyRequired }: DescribedOperation): Field[] {
  const surprise: Place = ['query', SURPRISE];
  const closed = { rule: 'closed', types: ['extra_forbidden'], outside: 'x', place: surprise, at: surprise };
  return [
    ...(parameters.some(({ in: part }) => part === 'query') ? [{ place: ['query'] as const, bounds: [closed] }] : []),
    ...parameters.flatMap(({ in: part, name, schema, required }) =>
      // HTTP itself holds the form of these headers (wire.test.ts).
      schema.pattern === HEADER_PATTERN ? [] : fieldsAt([part, name], schema, required === true && part !== 'path'),
    ),
    // An optional body may be null, which is the same as none: that has no bound.
    ...(body ? fieldsAt(['body'], body, false) : []).map(({ place, bounds }) => ({
      place,
      bounds: bounds.filter(({ rule, at }) => bodyRequired || at.length > 1 || rule !== 'not null'),
    })),
  ];
}

/** The field and every field below it. */
function fieldsAt(place: Place, schema: Schema, isRequired: boolean): Field[] {
  const { properties = {}, required = [], items, additionalProperties } = bare(schema);
  return [
    { place, bounds: boundsAt(place, schema, isRequired) },
    ...Object.entries(properties).flatMap(([name, property]) =>
      fieldsAt([...place, name], property, required.includes(name)),
    ),
    ...(items ? fieldsAt([...place, 0], items, false) : []),
    ...(isSchema(additionalProperties) ? fieldsAt([...place, 'key'], additionalProperties, false) : []),
  ];
}

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && Object.keys(value).length > 0;

function boundsAt(place: Place, schema: Schema, isRequired: boolean): Bound[] {
  const bared = bare(schema);
  const unknown = Object.keys(bared).filter((word) => !TESTED.includes(word) && !ANNOTATIONS.includes(word));
  if (unknown.length > 0) throw new Error(`${place.join('.')} has a bound that is not tested: ${unknown.join(', ')}`);
  const cases: Case[] = [
    ...(isRequired ? [{ rule: 'required', types: ['missing'], outside: undefined }] : []),
    ...(place[0] === 'body' ? kindCases(schema) : []),
    ...(place[0] === 'query' && place.length === 2 ? onceCases(bared) : []),
    ...valueCases(place, bared),
  ];
  if (cases.length === 0) throw new Error(`${place.join('.')} has no bound that can be tested`);
  return cases.map(({ below, ...bound }) => {
    const at: Place = below === undefined ? place : [...place, below];
    // Next to what is there, so that the other fields of the object keep their values.
    return { ...bound, place: below === SURPRISE ? at : place, at };
  });
}

const typesOf = ({ type }: Schema): unknown[] => [type].flat();

/** A value of another type, and null. */
function kindCases(schema: Schema): Case[] {
  const bared = bare(schema);
  const type = String(typesOf(bared).find((one) => one !== 'null'));
  const types = TYPE_FAULTS[type] ?? [];
  const isNullable = typesOf(schema).includes('null') || schema.anyOf?.some((option) => option.type === 'null');
  const outside = { string: 1, integer: '1', boolean: 'true', array: {}, object: [] }[type];
  if (isNullable) return [{ rule: `${type} or null`, types, inside: null, outside }];
  return [
    { rule: type, types, outside },
    { rule: 'not null', types: [...types, 'missing'], outside: null },
  ];
}

/** A parameter of a query: an object is written as `name[key]`, and only a list may be given twice. */
function onceCases(schema: Schema): Case[] {
  if (schema.type === 'array') return [];
  const types = Object.values(TYPE_FAULTS).flat();
  if (schema.type === 'object') return [{ rule: 'object', types, outside: 'x' }];
  const sample = sampleOf(schema, {});
  return [{ rule: 'once', types, outside: [sample, sample] }];
}

function valueCases(place: Place, schema: Schema): Case[] {
  const type = typesOf(schema).find((one) => one !== 'null');
  const values = schema.enum ?? (type === 'boolean' && place[0] === 'query' ? ['true', 'false'] : undefined);
  if (values)
    return [{ rule: 'enum', types: ['enum', 'bool_type'], inside: values.at(-1), outside: `${values.at(-1)}x` }];
  if (type === 'integer') return integerCases(place, schema);
  if (type === 'array') return listCases(place, schema);
  if (type === 'object') return objectCases(schema);
  return type === 'string' ? textCases(place, schema) : [];
}

function integerCases(place: Place, { minimum, maximum }: Schema): Case[] {
  if (minimum === undefined || maximum === undefined)
    throw new Error(`${place.join('.')} is an integer without bounds`);
  return [
    { rule: `minimum ${minimum}`, types: ['greater_than_equal'], inside: minimum, outside: minimum - 1 },
    { rule: `maximum ${maximum}`, types: ['less_than_equal'], inside: maximum, outside: maximum + 1 },
    { rule: 'whole', types: ['int_type', 'int_parsing'], outside: minimum + 0.5 },
  ];
}

function listCases(place: Place, { minItems, maxItems, items = {} }: Schema): Case[] {
  if (maxItems === undefined) throw new Error(`${place.join('.')} is a list without a longest length`);
  const item = sampleOf(items, {});
  const of = (length: number) => Array.from({ length }, () => item);
  const most = { rule: `maxItems ${maxItems}`, types: ['too_long'], inside: of(maxItems), outside: of(maxItems + 1) };
  const least = {
    rule: `minItems ${minItems}`,
    types: ['too_short'],
    inside: of(minItems ?? 1),
    outside: of((minItems ?? 1) - 1),
  };
  return minItems === undefined ? [most] : [least, most];
}

function objectCases({ additionalProperties, maxProperties, propertyNames }: Schema): Case[] {
  if (additionalProperties === false)
    return [{ rule: 'closed', types: ['extra_forbidden'], outside: 'x', below: SURPRISE }];
  // The envelope of a provider: what it has beyond its own fields is the provider's.
  if (maxProperties === undefined) return [];
  const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'x']));
  const { maxLength = 0 } = propertyNames ?? {};
  const [long, odd] = ['k'.repeat(maxLength + 1), 'a b'];
  return [
    {
      rule: `maxProperties ${maxProperties}`,
      types: ['value_error'],
      inside: keys(maxProperties),
      outside: keys(maxProperties + 1),
    },
    {
      rule: `names of at most ${maxLength} characters`,
      types: PATTERN_FAULTS,
      inside: { ['k'.repeat(maxLength)]: 'x' },
      outside: { [long]: 'x' },
      below: long,
    },
    { rule: `names like ${propertyNames?.pattern}`, types: PATTERN_FAULTS, outside: { [odd]: 'x' }, below: odd },
  ];
}

function textCases(place: Place, schema: Schema): Case[] {
  // Every other organization is 403 before the form is judged (mass-assignment.test.ts).
  if (place.join('.') === 'body.org_id') return [];
  const { minLength = 0, maxLength, pattern, format } = schema;
  if (maxLength === undefined && pattern === undefined && format === undefined)
    throw new Error(`${place.join('.')} is a text without bounds`);
  // Such a character has two units in JavaScript, and is one character of JSON Schema.
  const character = [TEXT_PATTERN, OPTIONAL_TEXT_PATTERN, VISIBLE_TEXT_PATTERN].includes(pattern ?? '')
    ? '\u{1D400}'
    : 'x';
  const of = (length: number) => character.repeat(length);
  return [
    ...(minLength > 0
      ? [
          {
            rule: `minLength ${minLength}`,
            types: ['string_too_short'],
            inside: of(minLength),
            outside: of(minLength - 1),
          },
        ]
      : []),
    ...(maxLength === undefined
      ? []
      : [
          {
            rule: `maxLength ${maxLength}`,
            types: ['string_too_long'],
            inside: of(maxLength),
            outside: of(maxLength + 1),
          },
        ]),
    ...formCases(place, schema),
  ];
}

/** The form of a text. What the document cannot express, such as NFC, hostile-value.test.ts tests for every text. */
function formCases(place: Place, schema: Schema): Case[] {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern, format } = schema;
  const fits = format === 'date-time' ? MOMENT : place.at(-1) === 'after' ? CURSOR : String(sampleOf(schema, {}));
  const form = new RegExp(pattern ?? '^[0-9-]{10}T[0-9:.]+Z$');
  if (!form.test(fits)) throw new Error(`${place.join('.')} has an example that does not fit its pattern`);
  const allows = (text: string) => text.length >= minLength && text.length <= maxLength;
  const outside = [
    `${fits.slice(0, -1)}!`,
    `${fits}!`,
    `${fits.slice(0, -1)} `,
    `${fits.slice(0, -1)}\u0007`,
    `${fits}\u0007`,
  ].find((text) => allows(text) && !form.test(text));
  if (outside === undefined) throw new Error(`${place.join('.')} has a pattern that is not tested: ${pattern}`);
  return [
    {
      rule: `form ${format ?? (form.source.length > RULE_LENGTH_MAX ? '' : form.source)}`.trim(),
      types: PATTERN_FAULTS,
      inside: fits,
      outside,
    },
  ];
}

const MOMENT = '2026-01-21T08:00:00.000Z';
const CURSOR = cursorText({ at: new Date(MOMENT), id: 'x' });

/** Groups of bounds that one request can test together: no value of a group is inside another one. */
export function roundsOf(bounds: readonly Bound[]): Bound[][] {
  const rounds: Bound[][] = [];
  for (const bound of bounds) {
    const free = rounds.find((round) => round.every(({ place }) => !isWithin(place, bound.place)));
    if (free) free.push(bound);
    else rounds.push([bound]);
  }
  return rounds;
}

/** What is not an object is refused before the other parts of the request are read, so it is alone. */
const isWithin = (one: Place, other: Place): boolean =>
  one.length === 1 ||
  other.length === 1 ||
  one.slice(0, other.length).join('\0') === other.slice(0, one.length).join('\0');
