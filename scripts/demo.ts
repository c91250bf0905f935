/**
 * `npm run demo`: a partner's first settlement against the running stack. Prints each request and its answer, and
 * compares each answer with the documentation. Exits 1 when one differs.
 *
 * Options: `--scenario <name>` plays an entry of the sandbox's list instead, `--scenario all` every one of them;
 * `--url <API>` names another stack than the one that `npm start` runs in this clone.
 */
import { parseArgs, styleText } from 'node:util';
import { loadConfig } from '../config.ts';
import { SCENARIOS } from '../domain/sandbox/scenario.ts';
import { findRunningStack } from '../process/running-stack.ts';
import { introduce, playFirstSettlement } from './demo/first-settlement.ts';
import { createNarrator, type Narrator } from './demo/narrator.ts';
import { playScenario, type ScenarioDeps } from './demo/scenario.ts';
import { resolvePayout } from './sandbox/resolve.ts';

async function playScenarios(narrator: Narrator, name: string): Promise<void> {
  const wanted = SCENARIOS.filter((scenario) => name === 'all' || scenario.name === name);
  if (wanted.length === 0) {
    const names = SCENARIOS.map((scenario) => scenario.name).join(', ');
    throw new Error(`Unknown scenario ${name}. The scenarios are: all, ${names}.`);
  }
  const deps = { narrator, partner: await introduce(narrator), resolveReview, bankledgerSecret: bankledgerSecret() };
  for (const scenario of wanted) await playScenario(deps, scenario);
}

/** The local sandbox's own secret, or the one that the environment names. */
function bankledgerSecret(): string {
  const env = { ...process.env, RUNTIME_ENVIRONMENT: 'local-sandbox', DATABASE_URL: 'postgresql://unused' };
  return loadConfig(env).bankledgerWebhookSecrets[0] ?? '';
}

const resolveReview: ScenarioDeps['resolveReview'] = async (settlementId, outcome) => {
  const deps = { env: process.env, print: console.log, warn: console.error, printData: () => undefined };
  const resolution = { outcome, operator: 'demo', note: 'The rail confirmed it by phone.' };
  const code = await resolvePayout(deps, settlementId, resolution);
  if (code !== 0) throw new Error('The review was not resolved.');
};

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
    console.log(styleText(['bold', 'green'], '\nEvery answer is as documented.'));
  } catch (error) {
    console.error(styleText(['bold', 'red'], `\n${error instanceof Error ? error.message : String(error)}`));
    process.exitCode = 1;
  } finally {
    await narrator.close();
  }
}
