/**
 * Links of the OpenAPI document: what can be read with the ids of an answer. They follow from names: an answer with
 * `settlement_id` links to every GET with `{settlement_id}` in its path that takes the same credential.
 */
import type { OpenAPIV3_1 } from 'openapi-types';
import type { Operation } from '../plugins/operation-list.ts';

/** Fields whose name differs from the parameter that takes their value. */
const FIELD_OF_PARAMETER: Readonly<Record<string, string>> = { cert_id: 'certificate_id' };

/** Every object names the organization that owns it. Only organizations and keys link to it. */
const OWNER_PARAMETER = 'org_id';
const OWNER_PATH = '/v1/orgs';

/** The same object under an older path. No answer links to it. */
const OLDER_PATHS = ['/v1/caribbean/settlements/{settlement_id}'];

type Target = { readonly operation: Operation; readonly operationId: string; readonly parameters: readonly string[] };

/**
 * Adds the links to the success of every operation. The answers must be described before.
 *
 * @returns the links by their names; a link is the same wherever it is followed from
 */
export function addLinks(
  document: OpenAPIV3_1.Document,
  operations: readonly Operation[],
): Record<string, OpenAPIV3_1.LinkObject> {
  const links: Record<string, OpenAPIV3_1.LinkObject> = {};
  const targets = operations.flatMap((operation) => asTarget(document, operation));
  for (const operation of operations) {
    for (const [status, response] of Object.entries(describedOf(document, operation)?.responses ?? {})) {
      if (!status.startsWith('2') || '$ref' in response) continue;
      const fields = fieldsOf(document, response);
      const reachable = targets.filter((target) => isReachable(target, operation, fields));
      for (const target of reachable) links[target.operationId] = linkTo(target);
      if (reachable.length > 0)
        response.links = Object.fromEntries(
          reachable.map(({ operationId }) => [operationId, { $ref: `#/components/links/${operationId}` }]),
        );
    }
  }
  return links;
}

const describedOf = (document: OpenAPIV3_1.Document, { path, method }: Operation) =>
  document.paths?.[path]?.[method.toLowerCase() as OpenAPIV3_1.HttpMethods];

function asTarget(document: OpenAPIV3_1.Document, operation: Operation): Target[] {
  const operationId = describedOf(document, operation)?.operationId;
  const parameters = [...operation.path.matchAll(/\{([a-z_]+)\}/g)].map(([, name = '']) => name);
  const isRead =
    operation.method === 'GET' &&
    !OLDER_PATHS.includes(operation.path) &&
    operationId !== undefined &&
    parameters.length > 0;
  return isRead ? [{ operation, operationId, parameters }] : [];
}

const fieldOf = (parameter: string): string => FIELD_OF_PARAMETER[parameter] ?? parameter;

/** Without a credential there is nothing of the caller's own to read, so both operations must take the same one. */
const isReachable = ({ operation: target, parameters }: Target, from: Operation, fields: readonly string[]): boolean =>
  target !== from &&
  target.access.auth === from.access.auth &&
  (from.path.startsWith(OWNER_PATH) || !parameters.includes(OWNER_PARAMETER)) &&
  parameters.every((parameter) => fields.includes(fieldOf(parameter)));

const linkTo = ({ operationId, parameters }: Target): OpenAPIV3_1.LinkObject => ({
  operationId,
  parameters: Object.fromEntries(parameters.map((name) => [name, `$response.body#/${fieldOf(name)}`])),
});

/** The names of the fields of a JSON answer; none for a list. */
function fieldsOf(document: OpenAPIV3_1.Document, response: OpenAPIV3_1.ResponseObject): readonly string[] {
  const schema = response.content?.['application/json']?.schema;
  if (schema === undefined) return [];
  const name = '$ref' in schema ? schema.$ref.replace('#/components/schemas/', '') : undefined;
  const target = name === undefined ? schema : document.components?.schemas?.[name];
  return Object.keys(target !== undefined && 'properties' in target ? (target.properties ?? {}) : {});
}
