/**
 * `npm run demo`: a partner's first settlement against the running stack, each request and its answer printed, each
 * answer compared with what the documentation promises. Exits 1 when anything differs.
 *
 * Options: `--scenario <name>` plays an entry of the sandbox's list instead, `--scenario all` every one of them;
 * `--url <API>` names another stack than the one that `npm start` runs in this clone.
 */
import { parseArgs, styleText } from 'node:util';
import { loadConfig } from '../config.ts';
import { SCENARIOS } from '../domain/sandbox/scenario.ts';
import { findRunningStack } from '../process/running-stack.ts';
import { playFirstSettlement, signUp } from './demo/first-settlement.ts';
import { createNarrator, type Narrator } from './demo/narrator.ts';
import { type Backstage, playScenario } from './demo/scenario.ts';
import { resolve } from './sandbox/resolve.ts';

async function playScenarios(narrator: Narrator, name: string): Promise<void> {
  const wanted = SCENARIOS.filter((scenario) => name === 'all' || scenario.name === name);
  if (wanted.length === 0)
    throw new Error(
      `There is no scenario ${name}; there are: all, ${SCENARIOS.map((scenario) => scenario.name).join(', ')}.`,
    );
  const partner = await signUp(narrator);
  for (const scenario of wanted) await playScenario(narrator, backstage(), partner, scenario);
}

/** The sandbox's own secret, and the operator's command. */
const backstage = (): Backstage => ({
  bankledgerSecret:
    loadConfig({ ...process.env, RUNTIME_ENVIRONMENT: 'local-sandbox', DATABASE_URL: 'postgresql://unused' })
      .bankledgerWebhookSecrets[0] ?? '',
  resolveReview: async (settlementId, outcome) => {
    const code = await resolve.run([
      settlementId,
      outcome,
      '--operator',
      'demo',
      '--note',
      'The rail told us by phone.',
    ]);
    if (code !== 0) throw new Error('The review was not resolved.');
  },
});

const { values } = parseArgs({ options: { url: { type: 'string' }, scenario: { type: 'string' } } });
const url = values.url ?? findRunningStack()?.apiUrl;

if (url === undefined) {
  console.error('No stack is running in this clone: run `npm start` in another terminal, or name one with --url.');
  process.exitCode = 1;
} else {
  const narrator = createNarrator(url);
  try {
    if (values.scenario === undefined) await playFirstSettlement(narrator);
    else await playScenarios(narrator, values.scenario);
    console.log(styleText(['bold', 'green'], '\nEverything is as promised.'));
  } catch (error) {
    console.error(styleText(['bold', 'red'], `\n${error instanceof Error ? error.message : String(error)}`));
    process.exitCode = 1;
  }
}
