/** `event`: makes a settlement's simulated provider send an event, through the test helper (contract §6). */
import { SANDBOX_EVENTS } from '../../domain/sandbox/event.ts';
import { oneOf, optional, required, text } from '../../ops/command-line/parameter.ts';
import { command, EXIT } from '../../ops/command-line/program.ts';
import { apiOf, callApi } from './api.ts';
import { API_URL, type SandboxCommand, type SandboxDeps, SETTLEMENT_ID } from './command.ts';

export const event: SandboxCommand = command({
  name: 'event',
  description: 'Makes the simulated provider send an event. Set API_KEY to a key with scope settle.',
  takes: {
    settlementId: SETTLEMENT_ID,
    event: required('<event>', 'the event', oneOf(SANDBOX_EVENTS)),
    amount: optional('--amount <amount>', 'what arrives or is disputed, such as 250.00', text),
    url: API_URL,
  },
  run: async ({ env, print, printData }: SandboxDeps, { settlementId, event: name, amount, url: given }) => {
    const fields = { event: name, ...(amount !== undefined && { amount }) };
    const accepted = await callApi(apiOf(env, given, 'settle'), ({ sandbox }) =>
      sandbox.sendEvent(settlementId, fields),
    );
    print(JSON.stringify(accepted, null, 2));
    printData(accepted);
    return EXIT.done;
  },
});
