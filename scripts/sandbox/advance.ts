/** `advance`: moves one settlement's own clock forward, through the test helper (contract §6). */
import { optional, text } from '../../ops/command-line/parameter.ts';
import { command, EXIT } from '../../ops/command-line/program.ts';
import { apiOf, callApi } from './api.ts';
import { API_URL, type SandboxCommand, type SandboxDeps, SETTLEMENT_ID } from './command.ts';

export const advance: SandboxCommand = command({
  name: 'advance',
  description: "Moves a settlement's own clock forward. Set API_KEY to a key with scope settle.",
  takes: {
    settlementId: SETTLEMENT_ID,
    by: optional('--by <duration>', 'such as P5D or PT30M; by default to the end of the current wait', text),
    url: API_URL,
  },
  run: async ({ env, print, printData }: SandboxDeps, { settlementId, by, url }) => {
    const advanced = await callApi(apiOf(env, url, 'settle'), ({ sandbox }) =>
      sandbox.advance(settlementId, by === undefined ? {} : { by }),
    );
    print(`The settlement was ${advanced.status}. Its clock is now at ${advanced.now}.`);
    printData(advanced);
    return EXIT.done;
  },
});
