/** The organization, its keys and its wallets (contract §3, §13). */
import type { KeyOptions } from './intent.ts';
import type { BodyOf, QueryOf } from './operation.ts';
import { createBelow, creationAt, listAt, type Request } from './request.ts';
import type { CallOptions, Send } from './transport.ts';

export const accountGroups = (send: Send, request: Request) => ({
  organizations: {
    /** The answer has the first key, once. It takes no idempotency key, so it is not repeated by itself. */
    create: async (fields: BodyOf<'POST', '/v1/orgs'>, options: CallOptions = {}) =>
      (await request('POST', '/v1/orgs', { body: fields, ...options })).data,
    get: async (orgId: string, options: CallOptions = {}) =>
      (await request('GET', '/v1/orgs/{org_id}', { path: { org_id: orgId }, ...options })).data,
    /** Your own key, its organization, and what is left of its quotas. */
    me: async (options: CallOptions = {}) => (await request('GET', '/v1/me', options)).data,
    /** What the organization used, by days in UTC, at most 92 of them. */
    usage: async (query: QueryOf<'/v1/usage'>, options: CallOptions = {}) =>
      (await request('GET', '/v1/usage', { query, ...options })).data,
  },
  apiKeys: {
    /** The answer has the key; for 24 hours the same idempotency key shows it again. */
    create: (orgId: string, fields: BodyOf<'POST', '/v1/orgs/{org_id}/keys'>, options?: CallOptions & KeyOptions) =>
      createBelow(send, '/v1/orgs/{org_id}/keys', { values: { org_id: orgId }, fields }, options),
    list: (orgId: string, query?: QueryOf<'/v1/orgs/{org_id}/keys'>, options?: CallOptions) =>
      listAt(send, '/v1/orgs/{org_id}/keys', query, { values: { org_id: orgId }, ...options }),
    /** As `create`, for the new key. The old one ends at once; it may only repeat this very request. */
    rotate: (keyId: string, options?: CallOptions & KeyOptions) =>
      createBelow(send, '/v1/orgs/keys/{key_id}/rotate', { values: { key_id: keyId } }, options),
    /** `descendants` also revokes the keys that it made: for a key that has leaked. */
    revoke: async (keyId: string, { descendants = false, ...options }: CallOptions & { descendants?: boolean } = {}) =>
      (
        await request('DELETE', '/v1/orgs/keys/{key_id}', {
          path: { key_id: keyId },
          query: { descendants },
          isRepeatable: true,
          ...options,
        })
      ).data,
  },
  wallets: {
    ...creationAt(send, '/v1/wallets'),
    get: async (walletId: string, options: CallOptions = {}) =>
      (await request('GET', '/v1/wallets/{wallet_id}', { path: { wallet_id: walletId }, ...options })).data,
    list: (query?: QueryOf<'/v1/wallets'>, options?: CallOptions) => listAt(send, '/v1/wallets', query, options),
  },
});
