/** Callers for tools that try the interface: made as any developer makes them in the local sandbox. */
import { z } from 'zod';

export type FuzzCaller = { readonly apiKey: string; readonly sessionToken: string };

const Organization = z.object({ org_id: z.string(), api_key: z.string() });
const Key = z.object({ key_id: z.string(), api_key: z.string() });
const Challenge = z.object({ challenge_id: z.string(), sandbox_code: z.string() });
const Session = z.object({ access_token: z.string() });

/** An organization with its full key, and a consumer's session. */
export async function createFuzzCaller(baseUrl: string): Promise<FuzzCaller> {
  const organization = await createOrganization(baseUrl);
  const challenge = await post(
    baseUrl,
    '/consumer/auth/request-otp',
    { email: `${crypto.randomUUID()}@consumer.example` },
    Challenge,
  );
  const session = await post(
    baseUrl,
    '/consumer/auth/verify-otp',
    { challenge_id: challenge.challenge_id, code: challenge.sandbox_code },
    Session,
  );
  return { apiKey: organization.api_key, sessionToken: session.access_token };
}

/** A key that was valid until it was revoked. */
export async function createRevokedKey(baseUrl: string): Promise<string> {
  const { org_id: orgId, api_key: fullKey } = await createOrganization(baseUrl);
  const headers = { 'x-api-key': fullKey };
  const key = await post(baseUrl, `/v1/orgs/${orgId}/keys`, { name: 'To be revoked', scope: 'read' }, Key, headers);
  const revoked = await fetch(`${baseUrl}/v1/orgs/keys/${key.key_id}`, { method: 'DELETE', headers });
  if (!revoked.ok) throw new Error(`The key could not be revoked: ${revoked.status}.`);
  return key.api_key;
}

const createOrganization = (baseUrl: string) =>
  post(baseUrl, '/v1/orgs', { name: 'Fuzzing', country: 'JM', contact_email: 'fuzz@acme.example' }, Organization);

async function post<Shape extends z.ZodType>(
  baseUrl: string,
  path: string,
  body: unknown,
  shape: Shape,
  headers: Readonly<Record<string, string>> = {},
): Promise<z.output<Shape>> {
  const answer = await fetch(`${baseUrl}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`POST ${path} answered ${answer.status}; this needs a local sandbox.`);
  return shape.parse(await answer.json());
}
