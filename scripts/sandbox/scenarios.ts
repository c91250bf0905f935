/** `scenarios`: every input of the sandbox that decides what happens, with the states that it leads to. */
import { SCENARIOS } from '../../domain/sandbox/scenario.ts';
import { optional } from '../../ops/command-line/parameter.ts';
import { command, EXIT } from '../../ops/command-line/program.ts';
import { apiOf, callApi } from './api.ts';
import { httpUrl, type SandboxCommand, type SandboxDeps } from './command.ts';

export const scenarios: SandboxCommand = command({
  name: 'scenarios',
  description:
    'Lists what can be tried, and the states that it leads to. Play one with npm run demo -- --scenario <name>.',
  takes: {
    url: optional('--url <url>', 'ask this API, with the key of API_KEY; by default the list of this clone', httpUrl),
  },
  run: async ({ env, print, printData }: SandboxDeps, { url }) => {
    const listed =
      url === undefined ? SCENARIOS : await callApi(apiOf(env, url, 'read'), ({ sandbox }) => sandbox.scenarios());
    const width = Math.max(...listed.map(({ name }) => name.length));
    for (const { name, summary, path, failure_code } of listed) {
      print(`${name.padEnd(width)}  ${summary}`);
      print(`${' '.repeat(width)}  ${path.join(' → ')}${failure_code === null ? '' : ` (${failure_code})`}`);
    }
    printData(listed);
    return EXIT.done;
  },
});
