/** Credentials for tools that test the API, created over HTTP in the local sandbox. */
import { z } from 'zod';
import { type Client, createClient } from '../../scripts/partner/client.ts';
import { signUp } from '../../scripts/partner/partner.ts';

export type FuzzCaller = { readonly apiKey: string; readonly sessionToken: string };

const Challenge = z.object({ challenge_id: z.string(), sandbox_code: z.string() });
const Session = z.object({ access_token: z.string() });

/** The full key of a new organization, and a new consumer's session. */
export const createFuzzCaller = (baseUrl: string): Promise<FuzzCaller> =>
  withClient(baseUrl, async ({ call }) => {
    const { apiKey } = await signUp(call, 'Fuzzing');
    const email = `${crypto.randomUUID()}@consumer.example`;
    const requested = await call({ method: 'POST', path: '/consumer/auth/request-otp', body: { email } });
    const { challenge_id, sandbox_code: code } = Challenge.parse(requested.json);
    const verified = await call({ method: 'POST', path: '/consumer/auth/verify-otp', body: { challenge_id, code } });
    return { apiKey, sessionToken: Session.parse(verified.json).access_token };
  });

async function withClient<T>(baseUrl: string, use: (client: Client) => Promise<T>): Promise<T> {
  const client = createClient({ baseUrl: () => baseUrl });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}
