/**
 * The local sandbox's provider: plays what the payer's token stands for by posting signed events to the inbound
 * webhooks, as a real provider would. It outlives crashes of everything it talks to.
 */
import { sleep } from '@temporalio/workflow';
import type { SandboxCollectionInput } from '../../activities/sandbox.ts';
import { record, visible } from '../activities.ts';

export async function sandboxCollection(input: SandboxCollectionInput): Promise<void> {
  const plan = await record.planCollection(input);
  for (const { step, event, delayMs } of plan) {
    if (delayMs > 0) await sleep(delayMs, { summary: `The provider takes its time before ${event}` });
    await visible(`Post ${event} to the webhook, signed`).postCollectionEvent({ ...input, step });
  }
}
