/** One event that a test helper requests from a provider of the local sandbox. It is retried until it is accepted. */
import type { SandboxEventInput } from '../../activities/sandbox.ts';
import { remote } from '../activities.ts';
import { uncancelable } from '../uncancelable.ts';

export const sandboxEvent = uncancelable(send);

async function send(input: SandboxEventInput): Promise<void> {
  await remote(`Send ${input.event}`).sendSandboxEvent(input);
}
