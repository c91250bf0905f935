/**
 * What operations took and answered in a run of the sandbox (`npm run record-examples`), in the document as one
 * component each. Lists, events and what is long are left to the reference: with them the document would be a quarter
 * larger, without them an eighth.
 */
import { readFile } from 'node:fs/promises';
import type { OpenAPIV3_1 } from 'openapi-types';

export type Example = {
  readonly body?: unknown;
  readonly query?: string;
  readonly status: number;
  readonly answer?: unknown;
};
/** By the id of the operation, or by the type of the event. */
export type Examples = Readonly<Record<string, Example>>;

export const EXAMPLES_FILE = new URL('./examples.json', import.meta.url);
export const readExamples = async (): Promise<Examples> => JSON.parse(await readFile(EXAMPLES_FILE, 'utf8'));

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const;
const JSON_TYPE = 'application/json';
const LENGTH_MAX = 1_700;

type Content = Record<string, OpenAPIV3_1.MediaTypeObject>;

/**
 * Refers from bodies and answers to their examples. A read refers to the answer of an operation before it that has the
 * same schema, where there is one.
 *
 * @returns the components that are referred to
 */
export function addExamples(
  { paths = {} }: OpenAPIV3_1.Document,
  examples: Examples,
): Record<string, OpenAPIV3_1.ExampleObject> {
  const components: Record<string, OpenAPIV3_1.ExampleObject> = {};
  const ofSchema = new Map<string, string>();
  const add = (content: Content | undefined, own: string, value: unknown, isRead: boolean): void => {
    const media = content?.[JSON_TYPE];
    if (media === undefined || value === undefined || Array.isArray(value)) return;
    if (JSON.stringify(value).length > LENGTH_MAX) return;
    const schema = JSON.stringify(media.schema);
    const name = (isRead && ofSchema.get(schema)) || own;
    components[name] ??= { value };
    if (!ofSchema.has(schema)) ofSchema.set(schema, name);
    media.examples = { recorded: { $ref: `#/components/examples/${name}` } };
  };
  for (const item of Object.values(paths))
    for (const method of METHODS) {
      const operation = item?.[method];
      const { operationId: id = '' } = operation ?? {};
      const example = examples[id];
      if (operation === undefined || example === undefined) continue;
      const { requestBody: body, responses } = operation;
      if (body && 'content' in body) add(body.content, `${id}.body`, example.body, false);
      const answer = responses?.[example.status];
      if (answer && 'content' in answer) add(answer.content, `${id}.answer`, example.answer, method === 'get');
    }
  return components;
}
