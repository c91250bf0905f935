/** The organizations of a run, and what they do besides settling. */
import type { HttpClient } from './client.ts';

/** An organization with a key of scope `full`. */
export type Tenant = {
  readonly orgId: string;
  readonly apiKey: string;
  /** One of its subscriptions, for redeliveries. */
  readonly webhookId?: string | undefined;
};

export const ACCOUNT_NUMBER = '111122223333';

export const authorize = ({ apiKey }: Tenant, more: Record<string, string> = {}) => ({ 'x-api-key': apiKey, ...more });

export async function createTenant(http: HttpClient): Promise<Tenant> {
  const body = { name: 'Torture', country: 'JM', contact_email: 'dev@acme.example' };
  const created = await http.untilAnswered({ method: 'POST', path: '/v1/orgs', body });
  return { orgId: created.body.org_id, apiKey: created.body.api_key };
}

/** @returns the recipient's id */
export async function createRecipient(http: HttpClient, tenant: Tenant, name: string): Promise<string> {
  const body = { kind: 'contractor', entity_type: 'individual', country: 'JM', name };
  const created = await http.untilAnswered({
    method: 'POST',
    path: '/v1/recipients',
    headers: authorize(tenant, { 'idempotency-key': crypto.randomUUID() }),
    body: { ...body, bank_details: { bank_name: 'First Bank', account_number: ACCOUNT_NUMBER, currency: 'JMD' } },
  });
  return created.body.recipient_id;
}

/** Opens a verification of the recipient and decides it. False when the service refused: one is open, for example. */
export async function decide(
  http: HttpClient,
  tenant: Tenant,
  recipientId: string,
  status: 'verified' | 'rejected',
): Promise<boolean> {
  const opened = await http.untilAnswered({
    method: 'POST',
    path: '/v1/kyc/verify',
    headers: authorize(tenant, { 'idempotency-key': crypto.randomUUID() }),
    body: { recipient_id: recipientId, org_id: tenant.orgId },
  });
  if (opened.status !== 201) return false;
  const decided = await http.untilAnswered({
    method: 'POST',
    path: `/v1/kyc/${opened.body.verification_id}/complete`,
    headers: authorize(tenant),
    body: { status, ...(status === 'rejected' ? { rejection_reason: 'torture' } : {}) },
  });
  return decided.status === 200;
}
