/** `event`: has a settlement's simulated provider send an event, by the test helper (contract §6). */
import { parseArgs } from 'node:util';
import { nameRunningStack } from '../../process/running-stack.ts';
import type { SandboxCommand } from './command.ts';

export const event: SandboxCommand = {
  usage: 'event <settlement_id> <event> [--amount AMOUNT] [--url API]   with API_KEY in the environment',
  run: async (args) => {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { amount: { type: 'string' }, url: { type: 'string' } },
    });
    const [settlementId = '', name = ''] = positionals;
    const url = values.url ?? nameRunningStack()?.apiUrl;
    const apiKey = process.env['API_KEY'];
    if (!url || !apiKey) {
      console.error(
        url
          ? 'Set API_KEY to a key with scope settle.'
          : 'No stack is running in this clone: run `npm start` in another terminal, or name one with --url.',
      );
      return 1;
    }
    const response = await fetch(`${url}/v2/test-helpers/settlements/${encodeURIComponent(settlementId)}/events`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': apiKey },
      body: JSON.stringify({ event: name, ...(values.amount === undefined ? {} : { amount: values.amount }) }),
    });
    console.log(JSON.stringify(await response.json(), null, 2));
    return response.ok ? 0 : 1;
  },
};
