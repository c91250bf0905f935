/**
 * The identity provider of the local sandbox: does what the recipient's name selects by posting signed provider
 * events to the inbound webhook, as a real provider would.
 */
import { sleep } from '@temporalio/workflow';
import { local, remote } from '../activities.ts';
import type { VerificationInput } from '../contract.ts';
import { uncancelable } from '../uncancelable.ts';

/** Long enough for a person to see the wait. */
const PROVIDER_DELAY_MS = 250;

export const sandboxVerification = uncancelable(verify);

async function verify(input: VerificationInput): Promise<void> {
  const plan = await local((now) => now.planVerification(input));
  for (const { step, event } of plan) {
    await sleep(PROVIDER_DELAY_MS, { summary: `The provider waits before ${event}` });
    await remote(`Post ${event} to the webhook, signed`).postVerificationEvent({ ...input, step });
  }
}
