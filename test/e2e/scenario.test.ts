/** Every scenario of the sandbox, over HTTP against the real stack: each leads where the list says. */
import { describe, expect } from 'vitest';
import { createClient } from '../../clients/typescript/index.ts';
import { requestResolution } from '../../db/commands/review.ts';
import { SCENARIOS } from '../../domain/sandbox/scenario.ts';
import { playScenario, type ScenarioDeps } from '../../scripts/demo/scenario.ts';
import { signUp } from '../../scripts/sandbox/partner.ts';
import { TEST_SECRETS } from '../support/api.ts';
import { FILE, withStack } from '../support/fixture.ts';

const test = withStack().extend('deps', FILE, async ({ stack }): Promise<ScenarioDeps> => {
  return {
    partner: await signUp({ baseUrl: stack.baseUrl }),
    narrator: { say: () => undefined, check: (what, actual, expected) => expect(actual, what).toEqual(expected) },
    resolveReview: async (settlementId, outcome) => {
      const asked = { outcome, operator: 'pat', note: 'The bank confirmed it by phone.' };
      await requestResolution(stack.api.deps, settlementId, asked);
    },
    bankledger: { client: createClient({ baseUrl: stack.baseUrl }), secret: TEST_SECRETS.bankledger },
  };
});

describe('the list of scenarios', () => {
  test('is served as it is', async ({ deps }) => {
    expect(await deps.partner.client.sandbox.scenarios()).toEqual(SCENARIOS);
  });

  test('names every scenario once', () => {
    expect(new Set(SCENARIOS.map((scenario) => scenario.name)).size).toBe(SCENARIOS.length);
  });
});

describe.concurrent('the scenario leads where the list says:', () => {
  test.for(SCENARIOS)('$name', (scenario, { deps }) => playScenario(deps, scenario));
});
