/** Who fuzzes: an organization and a consumer of their own, made as any developer makes them in the local sandbox. */
import { z } from 'zod';

export type FuzzCaller = { readonly apiKey: string; readonly sessionToken: string };

const Organization = z.object({ api_key: z.string() });
const Challenge = z.object({ challenge_id: z.string(), sandbox_code: z.string() });
const Session = z.object({ access_token: z.string() });

export async function createFuzzCaller(baseUrl: string): Promise<FuzzCaller> {
  const post = async <Shape extends z.ZodType>(path: string, body: unknown, shape: Shape): Promise<z.output<Shape>> => {
    const answer = await fetch(`${baseUrl}${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`POST ${path} answered ${answer.status}; fuzzing needs a local sandbox.`);
    return shape.parse(await answer.json());
  };
  const organization = await post('/v1/orgs', { name: 'Fuzzing', country: 'JM', contact_email: 'fuzz@acme.example' }, Organization);
  const challenge = await post('/consumer/auth/request-otp', { email: `${crypto.randomUUID()}@consumer.example` }, Challenge);
  const session = await post('/consumer/auth/verify-otp', { challenge_id: challenge.challenge_id, code: challenge.sandbox_code }, Session);
  return { apiKey: organization.api_key, sessionToken: session.access_token };
}
