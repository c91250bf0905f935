/**
 * Parameters that several operations take, as named parameters of the OpenAPI document. An operation refers to them:
 * written out they would be a tenth of the document.
 */
import type { OpenAPIV3_1 } from 'openapi-types';

type Parameter = OpenAPIV3_1.ParameterObject;
type Parameters = Record<string, Parameter>;

/** Replaces each parameter that occurs twice or more by a reference. @returns the parameters by their names */
export function shareParameters(operations: readonly OpenAPIV3_1.OperationObject[]): Parameters {
  const counts = new Map<string, number>();
  for (const parameter of operations.flatMap(ownParameters)) {
    const key = JSON.stringify(parameter);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const names = new Map<string, string>();
  const shared: Parameters = {};
  for (const operation of operations) {
    if (!operation.parameters) continue;
    operation.parameters = operation.parameters.map((parameter) => {
      const key = JSON.stringify(parameter);
      if ('$ref' in parameter || (counts.get(key) ?? 0) < 2) return parameter;
      const name = names.get(key) ?? freeName(shared, parameter);
      names.set(key, name);
      shared[name] = parameter;
      return { $ref: `#/components/parameters/${name}` };
    });
  }
  return shared;
}

const ownParameters = ({ parameters = [] }: OpenAPIV3_1.OperationObject): Parameter[] =>
  parameters.flatMap((parameter) => ('$ref' in parameter ? [] : [parameter]));

/** `recipient_id` in a path as `RecipientIdPath`. A second one of the same name tells whether it is required. */
function freeName(taken: Parameters, { name, in: place, required }: Parameter): string {
  const words = [...name.split(/[_-]/), place].map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  const base = words.join('');
  const named = [base, `${required ? 'Required' : 'Optional'}${base}`].find((candidate) => !(candidate in taken));
  if (named === undefined) throw new Error(`the shared parameters need another name for ${name} in ${place}`);
  return named;
}
