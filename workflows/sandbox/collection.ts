/**
 * The provider of the local sandbox: does what the payer's token selects by posting signed provider events to the
 * inbound webhooks, as a real provider would. A post is retried until the webhook accepts it.
 */
import { sleep } from '@temporalio/workflow';
import type { SandboxCollectionInput } from '../../activities/sandbox.ts';
import { local, remote } from '../activities.ts';
import { uncancelable } from '../uncancelable.ts';

export const sandboxCollection = uncancelable(collect);

async function collect(input: SandboxCollectionInput): Promise<void> {
  const plan = await local((now) => now.planCollection(input));
  for (const { step, event, delayMs } of plan) {
    if (delayMs > 0) await sleep(delayMs, { summary: `The provider waits before ${event}` });
    await remote(`Post ${event} to the webhook, signed`).postCollectionEvent({ ...input, step });
  }
}
