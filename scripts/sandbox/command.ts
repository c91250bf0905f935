/** What the commands of `npm run sandbox` share. */
import type { CommandTree, Printer } from '../../process/command-line.ts';
import { optional, type Reader, required, text } from '../../process/command-parameter.ts';

export type SandboxDeps = Printer & { readonly env: NodeJS.ProcessEnv };
export type SandboxCommand = CommandTree<SandboxDeps>;

const httpUrl: Reader<string> = {
  read: (given) =>
    URL.canParse(given) && /^https?:$/.test(new URL(given).protocol)
      ? { value: given.replace(/\/+$/, '') }
      : { fault: 'must be an http or https URL.' },
};

/** The completion offers the settlements of the running stack. */
export const SETTLEMENT_ID = required('<settlement-id>', 'the settlement', { ...text, offeredBy: 'settlements' });

export const API_URL = optional('--url <url>', 'the API; by default that of the stack in this clone', httpUrl);

export const NO_STACK = 'No stack is running in this clone: run `npm start` in another terminal';
