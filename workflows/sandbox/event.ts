/** One event that a test helper asked the local sandbox's providers for: sent until it was taken, and taken once. */
import type { SandboxEventInput } from '../../activities/sandbox.ts';
import { visible } from '../activities.ts';

export async function sandboxEvent(input: SandboxEventInput): Promise<void> {
  await visible(`Send ${input.event}`).sendSandboxEvent(input);
}
