/** Tenants of `shares`: each has an address of its own, which a trusted proxy would name. */
import { randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import { recipientBody } from '../../scripts/sandbox/partner.ts';
import { inParallel } from '../support/parallel.ts';

export type Answer = { readonly status: number; readonly body: string };

export type Tenant = {
  readonly orgId: string;
  call(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<Answer>;
};

export type Callers = Awaited<ReturnType<typeof openCallers>>;

const AT_ONCE = 4;
const OK_MAX = 299;

/**
 * @param connections of all tenants of this pool together
 * @param network a number of its own, from 0 to 255
 */
export function openCallers(apiUrl: string, connections: number, network: number) {
  const pool = new Pool(apiUrl, { connections });
  let addresses = 0;
  /** Of another IPv4 /24 each, so that none has used a budget of its network. */
  const newAddress = (): string => {
    addresses += 1;
    return `10.${network}.${addresses}.1`;
  };
  const caller =
    (address: string, apiKey?: string) =>
    async (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<Answer> => {
      const headers = {
        'x-forwarded-for': address,
        ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(path === '/v2/settle' ? { 'idempotency-key': randomUUID() } : {}),
      };
      const answer = await pool.request({
        ...{ method, path, headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: answer.statusCode, body: await answer.body.text() };
    };
  return {
    newAddress,
    signUp: async (address = newAddress()): Promise<Tenant> => {
      const fields = { name: 'Shares', country: 'US', contact_email: 'dev@shares.example' };
      const { org_id: orgId, api_key: apiKey } = jsonOf(await caller(address)('POST', '/v1/orgs', fields));
      return { orgId, call: caller(address, apiKey) };
    },
    close: () => pool.close(),
  };
}

// biome-ignore lint/suspicious/noExplicitAny: a benchmark reads any field of an answer.
export function jsonOf({ status, body }: Answer): any {
  if (status > OK_MAX) throw new Error(`a request of the preparation answered ${status}: ${body}`);
  return JSON.parse(body);
}

/** @returns the ids */
export const createRecipients = ({ call }: Tenant, count: number, metadata = {}): Promise<string[]> =>
  inParallel(Array(count).keys(), AT_ONCE, async () => {
    return jsonOf(await call('POST', '/v1/recipients', { ...recipientBody(), metadata })).recipient_id;
  });

/** @returns the ids */
export const createSubscriptions = ({ call }: Tenant, urls: readonly string[]): Promise<string[]> =>
  inParallel(urls, 1, async (url) => {
    return jsonOf(await call('POST', '/v1/webhooks', { url, event_types: ['*'] })).webhook_id;
  });
