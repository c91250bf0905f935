/** What the document shows is what works: the example of every body, sent as it stands, is accepted. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '../../db/id.ts';
import { describeApi } from '../../scripts/generate/openapi.ts';
import { createTestApi, type TestApi } from '../support/api.ts';
import { createRecipient, jsonOf } from '../support/partner.ts';
import { bare, type DescribedOperation, describedOperations, type Schema } from './document.ts';
import { headersOf, type Ids, urlOf } from './sample.ts';
import { type Attack, createAttack, type Tenant } from './world.ts';

let api: TestApi;
let attack: Attack;
let tenant: Tenant;

beforeAll(async () => {
  api = await createTestApi();
  attack = createAttack(api);
  tenant = await attack.createTenant();
});
afterAll(() => api.close());

/** As reference pages show a body: its own example, or every field's. */
function exampleOf(schema: Schema): unknown {
  const { example, enum: options, const: only, properties, items } = bare(schema);
  if (example !== undefined) return example;
  if (properties)
    return Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, exampleOf(property)]));
  return only ?? options?.[0] ?? (items ? [exampleOf(items)] : undefined);
}

/** Ids name what the caller has, which no document can know; a code is of the challenge that was just made. */
async function withOwnIds(operation: DescribedOperation, body: unknown, ids: Ids): Promise<unknown> {
  // Of a recipient whose verification is not open yet.
  const known = operation.path.startsWith('/v1/kyc/')
    ? { ...ids, recipient_id: await createRecipient({ api }, tenant.partner) }
    : ids;
  const fields = Object.entries(body ?? {}).map(([name, value]) => [name, known[name] ?? value]);
  const own = Object.fromEntries(fields);
  if (operation.path !== '/consumer/auth/verify-otp') return own;
  const challenge = jsonOf(
    await api.call(null, 'POST', '/consumer/auth/request-otp', { email: `${newId()}@consumer.example` }),
  );
  return { challenge_id: challenge.challenge_id, code: challenge.sandbox_code };
}

const withBody = describedOperations(await describeApi()).filter(({ body }) => body);

test.each(withBody.map((operation) => [operation.name, operation] as const))(
  'the example of %s is accepted',
  async (_name, operation) => {
    const ids = operation.access.auth === 'session' ? tenant.consumerIds : tenant.partnerIds;
    const body = await withOwnIds(operation, exampleOf(operation.body ?? {}), ids);
    const answer = await attack.send(operation, tenant, {
      url: urlOf(operation, ids),
      body,
      headers: headersOf(operation),
    });
    expect([answer.statusCode, answer.body]).toEqual([
      expect.toSatisfy((status: number) => status >= 200 && status < 300),
      answer.body,
    ]);
  },
);
