/** Credentials for tools that test the API, created over HTTP in the local sandbox. */
import { createConsumerClient } from '../../clients/typescript/index.ts';
import { signUp } from '../../scripts/sandbox/partner.ts';

export type FuzzCaller = { readonly apiKey: string; readonly sessionToken: string };

/** The full key of a new organization, and a new consumer's session. */
export async function createFuzzCaller(baseUrl: string): Promise<FuzzCaller> {
  const { apiKey } = await signUp({ baseUrl }, 'Fuzzing');
  const consumer = createConsumerClient({ baseUrl });
  const challenge = await consumer.requestOtp({ email: `${crypto.randomUUID()}@consumer.example` });
  const { challenge_id, sandbox_code: code = '' } = challenge;
  return { apiKey, sessionToken: (await consumer.verifyOtp({ challenge_id, code })).access_token };
}
