/** The operations of the interface, as `operations.csv` lists them. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { SCOPES, type Scope } from '../../domain/scope.ts';

export type OperationRow = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly auth: 'api_key' | 'optional_api_key' | 'signature' | 'session' | 'none';
  /** The least scope that the route accepts. */
  readonly scope: Scope | undefined;
  readonly success: number;
  /** `same`, or status and code. */
  readonly remote: string;
  readonly idempotencyKey: 'required' | 'optional' | '';
};

export const nameOf = ({ method, path: route }: { readonly method: string; readonly path: string }): string =>
  `${method} ${route}`;

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const AUTHS = ['api_key', 'optional_api_key', 'signature', 'session', 'none'] as const;
const IDEMPOTENCY = ['required', 'optional', ''] as const;

const oneOf = <Value extends string>(values: readonly Value[], text: string): Value => {
  const found = values.find((value) => value === text);
  if (found === undefined) throw new Error(`operations.csv: ${text} is none of ${values.join(', ')}`);
  return found;
};

/** `read for itself; full for another` needs at least `read`, which every key has: `any`. */
const leastScope = (text: string): Scope | undefined =>
  text === '' ? undefined : oneOf(SCOPES, text.replace('any', 'read').split(' ')[0] ?? '');

export const OPERATIONS: readonly OperationRow[] = readFileSync(
  path.join(import.meta.dirname, 'operations.csv'),
  'utf8',
)
  .trim()
  .split('\n')
  .slice(1)
  .map((line) => {
    const [method = '', route = '', auth = '', scope = '', success = '', remote = '', idempotencyKey = ''] =
      line.split(',');
    return {
      method: oneOf(METHODS, method),
      path: route,
      auth: oneOf(AUTHS, auth.replace(' ', '_')),
      scope: leastScope(scope),
      success: Number(success),
      remote,
      idempotencyKey: oneOf(IDEMPOTENCY, idempotencyKey),
    };
  });
