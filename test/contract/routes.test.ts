/**
 * The routes are the operations of `operations.csv`, each with the access, the gate and the answer that the file
 * names.
 */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { STATUS_OF } from '../../api/http/error-handler.ts';
import type { Operation } from '../../api/plugins/operation-list.ts';
import { describeApi } from '../../scripts/generate/openapi.ts';
import { nameOf, OPERATIONS, type OperationRow } from './operations.ts';

/** The pages of the service about itself (contract §15): open reads. */
const SERVICE_ROUTE =
  /^GET \/(openapi\.json|llms\.txt|docs|docs\/\{guide\}|docs\/search|docs\/reference\/\{group\}|status|problems|problems\/\{code\}|assets\/\{name\})?$/;

const registered = new Map((await describeApi()).operations.map((operation) => [nameOf(operation), operation]));

const declaredOf = (row: OperationRow): Operation => {
  const operation = registered.get(nameOf(row));
  if (!operation) throw new Error(`${nameOf(row)} is not registered`);
  return operation;
};

describe('the list of routes', () => {
  test('has 76 operations in the interface, each once', () => {
    expect(new Set(OPERATIONS.map(nameOf)).size).toBe(OPERATIONS.length);
    expect(OPERATIONS).toHaveLength(76);
  });

  test('has only the operations of the interface and the service routes', () => {
    const known = new Set(OPERATIONS.map(nameOf));
    expect([...registered.keys()].filter((name) => !known.has(name) && !SERVICE_ROUTE.test(name))).toEqual([]);
  });

  test('has every operation of the interface', () => {
    expect(OPERATIONS.map(nameOf).filter((name) => !registered.has(name))).toEqual([]);
  });

  test('has only open reads as service routes', () => {
    const service = [...registered.values()].filter((operation) => SERVICE_ROUTE.test(nameOf(operation)));
    expect(service.map(({ access }) => access.auth)).toEqual(service.map(() => 'none'));
    expect(service).not.toEqual([]);
  });
});

describe.each(OPERATIONS.map((row) => [nameOf(row), row] as const))('%s', (_name, row) => {
  test('declares the credential and the scope of the interface', () => {
    const { access } = declaredOf(row);
    expect(access.auth).toBe(row.auth);
    expect(access.auth === 'api_key' ? access.scope : undefined).toBe(row.scope);
  });

  test('declares its answer in a remote runtime', () => {
    const { remote = 'same' } = declaredOf(row).access;
    // The handler decides which events are refused remotely.
    expect(remote === 'same' ? 'same' : `${STATUS_OF[remote]} ${remote}`).toBe(
      row.remote.endsWith('for disputes') ? 'same' : row.remote,
    );
  });

  test('declares exactly the success status of the interface', () => {
    const statuses = Object.keys(z.record(z.string(), z.unknown()).parse(declaredOf(row).schema.response ?? {}));
    expect(statuses.filter((status) => status.startsWith('2'))).toEqual([String(row.success)]);
  });

  test('takes an idempotency key exactly as the interface says', () => {
    const { headers } = declaredOf(row).schema;
    const takes = (value: Record<string, string>) => headers instanceof z.ZodType && headers.safeParse(value).success;
    const shape = headers instanceof z.ZodObject ? Object.keys(headers.shape) : [];
    expect(shape.includes('idempotency-key')).toBe(row.idempotencyKey !== '');
    if (row.idempotencyKey !== '') {
      expect(takes({})).toBe(row.idempotencyKey === 'optional');
      expect(takes({ 'idempotency-key': 'abcdefghij.KLMN_0' })).toBe(true);
    }
  });

  test('has a summary, a tag and a schema for each identifier of its path', () => {
    const { schema } = declaredOf(row);
    expect(schema).toMatchObject({ summary: expect.any(String), tags: [expect.any(String)] });
    const named = [...row.path.matchAll(/\{([a-z_]+)\}/g)].map(([, name]) => name);
    expect(schema.params instanceof z.ZodObject ? Object.keys(schema.params.shape) : []).toEqual(named);
  });
});
