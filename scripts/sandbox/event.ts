/** `event`: makes a settlement's simulated provider send an event, through the test helper (contract §6). */
import { SANDBOX_EVENTS } from '../../domain/sandbox/event.ts';
import { CommandError, command, EXIT } from '../../process/command-line.ts';
import { oneOf, optional, required, text } from '../../process/command-parameter.ts';
import { nameRunningStack } from '../../process/running-stack.ts';
import { callApi } from './api.ts';
import { API_URL, NO_STACK, type SandboxCommand, type SandboxDeps } from './command.ts';

export const event: SandboxCommand = command({
  name: 'event',
  description: 'Makes the simulated provider send an event. Set API_KEY to a key with scope settle.',
  takes: {
    settlementId: required('<settlement-id>', 'the settlement', text),
    event: required('<event>', 'the event', oneOf(SANDBOX_EVENTS)),
    amount: optional('--amount <amount>', 'the amount that arrives, such as 250.00', text),
    url: API_URL,
  },
  run: async ({ env, print, printData }: SandboxDeps, { settlementId, event: name, amount, url: given }) => {
    const url = given ?? nameRunningStack()?.apiUrl;
    if (url === undefined) throw new CommandError(EXIT.unavailable, `${NO_STACK}, or give --url.`);
    const apiKey = env['API_KEY'];
    if (!apiKey) throw new CommandError(EXIT.configuration, 'Set API_KEY to a key with scope settle.');
    const path = `/v2/test-helpers/settlements/${encodeURIComponent(settlementId)}/events`;
    const accepted = await callApi({ url, apiKey }, 'POST', path, { event: name, amount });
    print(JSON.stringify(accepted, null, 2));
    printData(accepted);
    return EXIT.done;
  },
});
