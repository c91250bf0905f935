/** The fields of a body in words, from the schemas of the OpenAPI document: what each is, and what it may be. */
import { html } from 'ghtml';
import type { OpenAPIV3_1 } from 'openapi-types';
import { breakable, inlineCode } from './code.ts';

export type Schema = OpenAPIV3_1.SchemaObject | OpenAPIV3_1.ReferenceObject;
type Whole = OpenAPIV3_1.SchemaObject & { readonly const?: unknown };

/** A body with more forms is not shown with all of them. */
const FORMS_MAX = 8;
/** Deeper than any body of the interface. */
const DEPTH_MAX = 6;

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: 'text',
  integer: 'whole number',
  number: 'number',
  boolean: 'true or false',
  object: 'object',
  null: 'null',
};

/** Text with `code` in it, as HTML. */
export const prose = (text: string): string =>
  text
    .split(/`([^`]+)`/)
    .map((part, index) => (index % 2 === 1 ? inlineCode(part) : html`${part}`))
    .join('');

/** The schema with what it refers to and what it extends. */
export function wholeOf(document: OpenAPIV3_1.Document, schema: Schema): Whole {
  if ('$ref' in schema) {
    const { $ref, ...own } = schema;
    const target = document.components?.schemas?.[$ref.replace('#/components/schemas/', '')];
    return { ...(target === undefined ? {} : wholeOf(document, target as Schema)), ...own } as Whole;
  }
  const { allOf = [], ...own } = schema;
  const parts = [...allOf.map((part) => wholeOf(document, part)), own as Whole];
  if (parts.length === 1) return own as Whole;
  return {
    ...Object.assign({}, ...parts),
    properties: Object.assign({}, ...parts.map(({ properties }) => properties)),
    required: parts.flatMap(({ required = [] }) => required),
  };
}

/** The alternatives of a schema that is not null, and whether it can be. */
function choicesOf(
  document: OpenAPIV3_1.Document,
  whole: Whole,
): { readonly choices: Whole[]; readonly nullable: boolean } {
  const { anyOf, oneOf, ...own } = whole;
  const choices = [...(anyOf ?? []), ...(oneOf ?? [])].map((choice) => wholeOf(document, choice));
  const nullable = choices.some(({ type }) => type === 'null') || [own.type].flat().includes('null');
  const real = choices.filter(({ type }) => type !== 'null');
  return {
    choices:
      real.length === 0 ? [own as Whole] : real.map((choice) => ({ ...choice, ...own, type: choice.type }) as Whole),
    nullable,
  };
}

function typeWords(document: OpenAPIV3_1.Document, whole: Whole): string {
  if (whole.const !== undefined) return JSON.stringify(whole.const);
  if (whole.format === 'date-time') return 'time';
  if ('items' in whole && whole.items) return `list of ${typeWords(document, wholeOf(document, whole.items))}`;
  const { additionalProperties: values, properties } = whole;
  if (typeof values === 'object' && properties === undefined)
    return `object of ${typeWords(document, wholeOf(document, values as Schema))}`;
  const [type = 'any'] = [whole.type].flat().filter((name) => name !== 'null');
  return TYPE_WORDS[type] ?? type;
}

/** Limits and values, as sentences. */
function rulesOf(whole: Whole): string[] {
  const { enum: values, minLength = 0, maxLength, minimum, maximum, default: usual, example } = whole;
  return [
    values ? `One of ${values.map((value) => `\`${String(value)}\``).join(', ')}.` : '',
    maxLength === undefined ? '' : `${minLength === maxLength ? '' : `${minLength} to `}${maxLength} characters.`,
    minimum === undefined && maximum === undefined ? '' : `${minimum ?? '…'} to ${maximum ?? '…'}.`,
    usual === undefined ? '' : `By default \`${JSON.stringify(usual)}\`.`,
    example === undefined || typeof example === 'object' || values ? '' : suchAs(String(example)),
  ].filter((rule) => rule !== '');
}

/** A sentence, with one full stop. */
const suchAs = (example: string): string => `Such as \`${example.replace(/\.$/, '')}\`.`;

type Named = {
  readonly name: string;
  readonly schema: Schema;
  readonly note: string;
  readonly description?: string | undefined;
};

/** A list of fields or parameters. @param depth how many bodies it is inside of */
export const fieldList = (document: OpenAPIV3_1.Document, fields: readonly Named[], depth = 0): string =>
  html`<dl class="fields">
!${fields.map((field) => fieldItem(document, field, depth))}
</dl>`;

function fieldItem(document: OpenAPIV3_1.Document, { name, schema, note, description }: Named, depth: number): string {
  const { choices, nullable } = choicesOf(document, wholeOf(document, schema));
  const words = [...new Set(choices.map((choice) => typeWords(document, choice))), ...(nullable ? ['null'] : [])].join(
    ' or ',
  );
  const said = [description ?? choices[0]?.description ?? '', ...(choices[0] ? rulesOf(choices[0]) : [])];
  const inner = depth < DEPTH_MAX ? choices.map((choice) => innerFields(document, choice, depth + 1)) : [];
  return html`<div><dt><code>!${breakable(name)}</code> <span class="why">${words}${note}</span></dt><dd>!${prose(
    said.filter((text) => text !== '').join(' '),
  )}!${inner}</dd></div>
`;
}

/** The fields inside a field: of an object, or of each object of a list. */
function innerFields(document: OpenAPIV3_1.Document, whole: Whole, depth: number): string {
  const one = 'items' in whole && whole.items ? wholeOf(document, whole.items) : whole;
  const { choices } = choicesOf(document, one);
  if (choices.length > FORMS_MAX) return '';
  return choices
    .filter(({ properties }) => properties !== undefined)
    .map((choice) => html`<details><summary>Fields</summary>!${bodyFields(document, choice, depth)}</details>`)
    .join('');
}

/** The fields of a body. @param isRequest what a request must have is said; an answer has all that is not optional */
export function bodyFields(document: OpenAPIV3_1.Document, schema: Schema, depth = 0, isRequest = false): string {
  const { choices } = choicesOf(document, wholeOf(document, schema));
  // Only an event has that many forms, and they have a page of their own.
  if (choices.length > FORMS_MAX)
    return html`<p>Its form follows from its <code>type</code>: <a href="/docs/reference/events">events</a>.</p>`;
  return choices
    .map((choice) => {
      const { properties = {}, required = [] } = choice;
      const noteOf = (name: string): string => {
        if (isRequest) return required.includes(name) ? ', required' : '';
        return required.includes(name) ? '' : ', may be absent';
      };
      const fields = Object.entries(properties).map(([name, field]) => ({
        name,
        schema: field as Schema,
        note: noteOf(name),
      }));
      if (fields.length > 0) return fieldList(document, fields, depth);
      const list = 'items' in choice && choice.items;
      return list ? html`<p>A list. Each entry:</p>!${bodyFields(document, list, depth, isRequest)}` : '';
    })
    .join('');
}
