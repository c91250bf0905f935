/** The generated files of the Python client. They are made from the document, so that no Python is needed for it. */
import { type OpenApi, referencedName, type Schema } from './document.ts';
import { pythonModels } from './model.ts';
import { pythonResources } from './resource.ts';

const PACKAGE = 'clients/python/src/settlement_service';

export function pythonClient(document: OpenApi): Readonly<Record<string, string>> {
  const read = withReferencesWritten(document);
  return {
    [`${PACKAGE}/models.py`]: pythonModels(read),
    [`${PACKAGE}/resources.py`]: pythonResources(read),
  };
}

/**
 * The document with each answer that operations share written in each of them, and each named scalar where it is used:
 * Python has no types for scalars but `str` and `bool`.
 */
function withReferencesWritten(document: OpenApi): OpenApi {
  const { schemas, responses = {} } = document.components;
  const isScalar = ({ type, enum: values }: Schema): boolean =>
    (type === 'string' || type === 'boolean') && values === undefined;
  const scalars = new Map(Object.entries(schemas).filter(([, schema]) => isScalar(schema)));
  const written = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(written);
    if (typeof value !== 'object' || value === null) return value;
    const { $ref, ...own } = value as Schema;
    const name = referencedName($ref ?? '');
    if ($ref?.startsWith('#/components/responses/')) return written(responses[name]);
    const scalar = scalars.get(name);
    if (scalar !== undefined) return { ...scalar, ...own };
    return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, written(child)]));
  };
  const others = Object.fromEntries(Object.entries(schemas).filter(([name]) => !scalars.has(name)));
  return written({ ...document, components: { ...document.components, schemas: others } }) as OpenApi;
}
