/** What the commands of `npm run sandbox` share. */

import { optional, type Reader, required } from '../../ops/command-line/parameter.ts';
import type { CommandTree, Printer } from '../../ops/command-line/program.ts';

export type SandboxDeps = Printer & { readonly env: NodeJS.ProcessEnv };
export type SandboxCommand = CommandTree<SandboxDeps>;

export const httpUrl: Reader<string> = {
  read: (given) =>
    URL.canParse(given) && /^https?:$/.test(new URL(given).protocol)
      ? { value: given.replace(/\/+$/, '') }
      : { fault: 'must be an http or https URL.' },
};

const ID = /^[A-Za-z0-9_-]{1,64}$/;

/** Its value becomes a part of a path, where `..` would be another path. */
const settlementId: Reader<string> = {
  read: (given) =>
    ID.test(given.trim()) ? { value: given.trim() } : { fault: "must be a settlement's id, such as stl_abc." },
};

export const SETTLEMENT_ID = required('<settlement-id>', 'the settlement', settlementId);

export const API_URL = optional('--url <url>', 'the API; by default that of the stack in this clone', httpUrl);

export const NO_STACK = 'No stack is running in this clone: run `npm start` in another terminal';
