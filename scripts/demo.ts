/**
 * `npm run demo`: a partner's first settlement against the running stack. Prints each request and its answer, and
 * compares each answer with the documentation. Exits 1 when one differs.
 */
import { styleText } from 'node:util';
import { createClient } from '../clients/typescript/index.ts';
import { loadConfig } from '../config/load.ts';
import { SCENARIOS, type Scenario } from '../domain/sandbox/scenario.ts';
import { oneOf, optional, type ValuesOf } from '../ops/command-line/parameter.ts';
import { CommandError, command, EXIT, type Printer, runProgram, standardOutput } from '../ops/command-line/program.ts';
import { findRunningStack } from '../process/local/running-stack.ts';
import { introduce, playFirstSettlement } from './demo/first-settlement.ts';
import { createNarrator, type Narrator } from './demo/narrator.ts';
import { playScenario, type ScenarioDeps } from './demo/scenario.ts';
import { API_URL, NO_STACK } from './sandbox/command.ts';

/** Plays on after a difference, and prints at the end what was promised and what came. */
async function playScenarios(narrator: Narrator, name: string): Promise<void> {
  const wanted = SCENARIOS.filter((scenario) => name === 'all' || scenario.name === name);
  const bankledger = { client: createClient(narrator.connection), secret: bankledgerSecret() };
  const deps = { narrator, partner: await introduce(narrator), resolveReview, bankledger };
  const results: { readonly scenario: Scenario; readonly difference: string | undefined }[] = [];
  for (const scenario of wanted) {
    const difference = await playScenario(deps, scenario).then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    if (difference !== undefined) narrator.show(difference);
    results.push({ scenario, difference });
  }
  for (const line of tableOf(results)) narrator.show(line);
  const different = results.filter(({ difference }) => difference !== undefined).length;
  if (different > 0) throw new Error(`${different} of ${results.length} scenarios differ from the list.`);
}

function tableOf(results: readonly { readonly scenario: Scenario; readonly difference: string | undefined }[]) {
  const rows = results.map(({ scenario: { name, path, failure_code }, difference }) => [
    name,
    failure_code === null ? `${path.at(-1)}` : `${path.at(-1)}, ${failure_code}`,
    difference === undefined ? 'as promised' : 'DIFFERENT, see above',
  ]);
  const all = [['scenario', 'promised', 'came'], ...rows];
  const widthOf = (column: number) => Math.max(...all.map((row) => row[column]?.length ?? 0));
  return [
    '',
    ...all.map((row) =>
      row
        .map((cell, column) => cell.padEnd(widthOf(column)))
        .join('  ')
        .trimEnd(),
    ),
  ];
}

/** The local sandbox's own secret, or the one that the environment names. */
function bankledgerSecret(): string {
  const env = { ...process.env, RUNTIME_ENVIRONMENT: 'local-sandbox', DATABASE_URL: 'postgresql://unused' };
  return loadConfig(env).bankledgerWebhookSecrets[0] ?? '';
}

const resolveReview: ScenarioDeps['resolveReview'] = async (settlementId, outcome) => {
  const act = ['--operator', 'demo', '--note', 'The rail confirmed it by phone.', '--yes'];
  // Imported only here: all commands of operators take a second to load.
  const { runConfigured } = await import('../ops/main.ts');
  const code = await runConfigured(['resolve', settlementId, outcome, ...act], {
    print: console.log,
    warn: console.error,
  });
  if (code !== 0) throw new Error('The review was not resolved.');
};

const TAKES = {
  scenario: optional(
    '--scenario <name>',
    "play this entry of the sandbox's list instead, or all of them",
    oneOf(['all', ...SCENARIOS.map(({ name }) => name)]),
  ),
  url: API_URL,
};

const program = command({
  name: 'demo',
  description: "Plays a partner's first settlement. Exits with 1 when an answer is not as documented.",
  takes: TAKES,
  json: false,
  run: async ({ print, warn }: Printer, { scenario, url }: ValuesOf<typeof TAKES>) => {
    const stack = url === undefined ? findRunningStack() : undefined;
    const baseUrl = url ?? stack?.apiUrl;
    if (baseUrl === undefined) throw new CommandError(EXIT.unavailable, `${NO_STACK}, or name one with --url.`);
    const narrator = createNarrator(baseUrl);
    try {
      await (scenario === undefined
        ? playFirstSettlement(narrator, stack?.temporalUiUrl)
        : playScenarios(narrator, scenario));
      print(styleText(['bold', 'green'], '\nEvery answer is as documented.'));
      return EXIT.done;
    } catch (error) {
      warn(
        styleText(['bold', 'red'], `\n${error instanceof Error ? error.message : String(error)}`, {
          stream: process.stderr,
        }),
      );
      return EXIT.refused;
    }
  },
});

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) => act(printer));
