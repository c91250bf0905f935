/** The document's examples work: the example of every body is accepted as it is. */
import { expect } from 'vitest';
import { describeApi } from '../../scripts/generate/openapi.ts';
import type { TestApi } from '../support/api.ts';
import { challenge } from '../support/consumer.ts';
import { createRecipient } from '../support/partner.ts';
import { bare, type DescribedOperation, describedOperations, type Schema } from './document.ts';
import { withAttack } from './fixture.ts';
import type { Ids } from './sample.ts';
import { idsOf, type Tenant } from './world.ts';

const test = withAttack();

/** As reference pages show a body: its own example, or the examples of its fields. */
function exampleOf(schema: Schema): unknown {
  const { example, enum: options, const: only, properties, items } = bare(schema);
  if (example !== undefined) return example;
  if (properties)
    return Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, exampleOf(property)]));
  return only ?? options?.[0] ?? (items ? [exampleOf(items)] : undefined);
}

/**
 * Ids must be of the caller's own objects, which no document can know; a code belongs to a challenge of this moment.
 */
async function withOwnIds(api: TestApi, tenant: Tenant, operation: DescribedOperation): Promise<unknown> {
  const body = exampleOf(operation.body ?? {});
  if (operation.path === '/consumer/auth/verify-otp') {
    const { id, code } = await challenge(api);
    return { challenge_id: id, code };
  }
  // A verification needs a recipient without an open one.
  const own: Ids = operation.path.startsWith('/v1/kyc/')
    ? { ...idsOf(tenant, operation), recipient_id: await createRecipient(api, tenant.partner) }
    : idsOf(tenant, operation);
  return Object.fromEntries(Object.entries(body ?? {}).map(([name, value]) => [name, own[name] ?? value]));
}

const withBody = describedOperations(await describeApi()).filter(({ body }) => body);

test.for(withBody.map((operation) => [operation.name, operation] as const))(
  'the example of %s is accepted',
  async ([_name, operation], { api, tenant, send }) => {
    const answer = await send(operation, await withOwnIds(api, tenant, operation));
    expect([answer.statusCode, answer.body]).toEqual([
      expect.toSatisfy((status: number) => status >= 200 && status < 300),
      answer.body,
    ]);
  },
);
