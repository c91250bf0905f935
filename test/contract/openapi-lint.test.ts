/** A linter made for OpenAPI documents has nothing to say about this one. */
import path from 'node:path';
import { createConfig, lint } from '@redocly/openapi-core';
import { expect, test } from 'vitest';
import { repositoryRoot } from '../../process/local/place.ts';

/** Every rule that Redocly recommends, each as an error, and two more; without two, for the reasons given there. */
const CONFIG = {
  extends: ['recommended-strict'],
  rules: {
    'operation-tag-defined': 'error',
    'parameter-description': 'error',
    // There are `/v1/orgs/keys/{key_id}` and `/v1/orgs/{org_id}/keys`. No id is the word `keys`.
    'no-ambiguous-paths': 'off',
    // The health checks take nothing that they could refuse.
    'operation-4xx-response': 'off',
  },
} as const;

test('the committed document has no fault and no warning', async () => {
  const problems = await lint({
    ref: path.join(repositoryRoot, 'docs/openapi.json'),
    config: await createConfig({ ...CONFIG, extends: [...CONFIG.extends] }),
  });
  expect(problems.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer}: ${message}`)).toEqual([]);
});
