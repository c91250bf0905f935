/**
 * The local sandbox's identity provider: plays what the recipient's name stands for by posting signed events to the
 * inbound webhook, as a real provider would.
 */
import { sleep } from '@temporalio/workflow';
import { record, visible } from '../activities.ts';
import type { VerificationInput } from '../contract.ts';

/** Long enough for the wait to be seen. */
const PROVIDER_DELAY_MS = 250;

export async function sandboxVerification(input: VerificationInput): Promise<void> {
  const plan = await record.planVerification(input);
  for (const { step, event } of plan) {
    await sleep(PROVIDER_DELAY_MS, { summary: `The provider takes its time before ${event}` });
    await visible(`Post ${event} to the webhook, signed`).postVerificationEvent({ ...input, step });
  }
}
