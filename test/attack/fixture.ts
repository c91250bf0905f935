/** The API under attack, and a tenant with one object of each kind. */
import type { TestApiOptions } from '../support/api.ts';
import { FILE, withApi } from '../support/fixture.ts';
import type { DescribedOperation } from './document.ts';
import { headersOf, urlOf } from './sample.ts';
import { createWire } from './wire.ts';
import { createAttack, idsOf } from './world.ts';

/**
 * As `withApi`, with `attack` (calls whose answers are checked against the document), `wire` (requests as bytes),
 * `tenant` (the caller) and `send` (calls an operation for the tenant, on the tenant's own objects).
 */
export const withAttack = (options: TestApiOptions = {}) =>
  withApi(options)
    .extend('attack', FILE, ({ api }) => createAttack(api))
    .extend('wire', FILE, ({ port }) => createWire(port))
    .extend('tenant', FILE, ({ attack }) => attack.createTenant())
    .extend(
      'send',
      FILE,
      ({ attack, tenant }) =>
        (operation: DescribedOperation, body: unknown, headers: Record<string, string> = {}) =>
          attack.send(operation, tenant, {
            url: urlOf(operation, idsOf(tenant, operation)),
            body,
            headers: { ...headersOf(operation), ...headers },
          }),
    );
