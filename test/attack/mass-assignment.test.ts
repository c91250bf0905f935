/** No body names another organization than that of its caller. */
import { describe, expect } from 'vitest';
import { newId } from '../../db/id.ts';
import { describeApi } from '../../scripts/generate/openapi.ts';
import { digestTables } from '../support/database.ts';
import { FILE } from '../support/fixture.ts';
import { describedOperations } from './document.ts';
import { withAttack } from './fixture.ts';
import { bodyWith } from './sample.ts';
import { idsOf } from './world.ts';

/** `digests`: of the database once the tenant has its objects. No refused request writes to it. */
const test = withAttack().extend(
  'digests',
  FILE,
  async ({ api, tenant: _tenant }) => await digestTables(api.connection.pool),
);

const withBody = describedOperations(await describeApi()).filter(
  ({ body, access }) => body && access.auth !== 'signature',
);

describe.each(withBody.map((operation) => [operation.name, operation] as const))('%s', (_name, operation) => {
  test("403 organization_mismatch, or 422, for another organization's org_id, and nothing is written", async ({
    api,
    tenant,
    digests,
    send,
  }) => {
    const answer = await send(operation, bodyWith(operation, [['org_id']], newId(), idsOf(tenant, operation)));
    const isPartner = operation.access.auth === 'api_key';
    expect([answer.statusCode, JSON.parse(answer.body)]).toEqual(
      isPartner
        ? [403, expect.objectContaining({ code: 'organization_mismatch' })]
        : [422, { detail: [expect.objectContaining({ loc: ['body', 'org_id'], type: 'extra_forbidden' })] }],
    );
    expect(await digestTables(api.connection.pool)).toEqual(digests);
  });
});
