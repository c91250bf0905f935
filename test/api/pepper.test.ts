/**
 * A rotation of the pepper (contract §3): keys and sessions that were hashed under the old pepper stay valid. A key
 * moves to the new pepper when it is used.
 */
import { randomBytes } from 'node:crypto';
import { eq } from 'drizzle-orm';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { expect, vi } from 'vitest';
import { buildApp } from '../../api/app.ts';
import type { Config } from '../../config/load.ts';
import { apiKeys, consumerSessions } from '../../db/schema/index.ts';
import { OTP_LIMITS } from '../../domain/otp.ts';
import { type Caller, TEST_SECRETS, type TestApi } from '../support/api.ts';
import { challenge, newEmail, otherThan, signIn } from '../support/consumer.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { callerOf } from '../support/partner.ts';

const OLD = TEST_SECRETS.apiKeyPepper;
const NEW = { id: 'test-2', secret: randomBytes(32).toString('hex') };

const appWith = async ({ deps }: TestApi, ...apiKeyPeppers: Config['apiKeyPeppers']): Promise<FastifyInstance> => {
  const app = await buildApp({ ...deps, config: { ...deps.config, apiKeyPeppers } }, pino({ level: 'silent' }));
  await app.ready();
  return app;
};

/** The API as configured in each step of a rotation. `api` is the API before it, with the old pepper only. */
const test = withApi().extend('rotation', FILE, async ({ api }, { onCleanup }) => {
  const [prepared, switched, finished] = await Promise.all([
    appWith(api, OLD, NEW),
    appWith(api, NEW, OLD),
    appWith(api, NEW),
  ]);
  onCleanup(async () => void (await Promise.all([prepared, switched, finished].map((app) => app.close()))));
  return { prepared, switched, finished };
});

const statusOf = async (app: FastifyInstance, { apiKey }: Caller): Promise<number> =>
  (await app.inject({ url: '/v1/recipients', headers: { 'x-api-key': apiKey } })).statusCode;
const pepperOf = async (api: TestApi, { keyId }: Caller) =>
  (await api.connection.db.select().from(apiKeys).where(eq(apiKeys.keyId, keyId)))[0]?.pepperId;
const post = (app: FastifyInstance, url: string, payload: object, headers = {}) =>
  app.inject({ method: 'POST', url, payload, headers });
const verify = (app: FastifyInstance, challengeId: string, code: string) =>
  post(app, '/consumer/auth/verify-otp', { challenge_id: challengeId, code });

test('401 with only the new pepper for a key that was not used since the rotation', async ({ api, rotation }) => {
  const caller = await api.createCaller();
  expect([await statusOf(rotation.finished, caller), await statusOf(rotation.switched, caller)]).toEqual([401, 200]);
});

test('a used key moves to the new pepper and is valid without the old one', async ({ api, rotation }) => {
  const caller = await api.createCaller();
  expect(await pepperOf(api, caller)).toBe(OLD.id);
  expect(await statusOf(rotation.switched, caller)).toBe(200);
  await expect.poll(() => pepperOf(api, caller)).toBe(NEW.id);
  expect([await statusOf(rotation.finished, caller), await statusOf(rotation.prepared, caller)]).toEqual([200, 200]);
});

test('401 for a revoked key, whichever the pepper', async ({ api, rotation }) => {
  const caller = await api.createCaller();
  await api.connection.db.update(apiKeys).set({ status: 'revoked' }).where(eq(apiKeys.keyId, caller.keyId));
  expect([await statusOf(api.app, caller), await statusOf(rotation.switched, caller)]).toEqual([401, 401]);
  expect(await pepperOf(api, caller)).toBe(OLD.id);
});

test('a key is looked up and its request counted in one statement, for any number of peppers', async ({ api }) => {
  const caller = await api.createCaller();
  const many = await appWith(api, NEW, { id: 'test-0', secret: randomBytes(32).toString('hex') }, OLD);
  const request = { url: '/v2/capabilities', headers: { 'x-api-key': caller.apiKey } };
  // The first use of a key also stores when it was used, and its hash under the new pepper.
  await many.inject(request);
  await expect.poll(() => pepperOf(api, caller)).toBe(NEW.id);
  const query = vi.spyOn(api.connection.pool, 'query');
  expect((await many.inject(request)).statusCode).toBe(200);
  const statements = query.mock.calls.map(([sent]) => (sent as { readonly name?: string }).name);
  query.mockRestore();
  await many.close();
  expect(statements).toEqual(['api_key.caller']);
});

test('a key that is issued after the rotation has the new pepper', async ({ api, rotation }) => {
  const signUp = { name: 'Acme', country: 'JM', contact_email: 'dev@acme.example' };
  const answer = await post(rotation.switched, '/v1/orgs', signUp);
  expect(answer.statusCode, answer.body).toBe(201);
  const caller = callerOf(answer.json());
  expect([await pepperOf(api, caller), await statusOf(api.app, caller)]).toEqual([NEW.id, 401]);
});

test('200 for a code from before the rotation, 401 for a wrong one', async ({ api, rotation }) => {
  const { id, code } = await challenge(api);
  expect((await verify(rotation.switched, id, otherThan(code))).statusCode).toBe(401);
  expect((await verify(rotation.switched, id, code)).statusCode).toBe(200);
});

test('200 for a session from before the rotation', async ({ api, rotation }) => {
  const headers = { authorization: `Bearer ${(await signIn(api)).token}` };
  const me = async (app: FastifyInstance) => (await app.inject({ url: '/consumer/me', headers })).statusCode;
  expect([await me(rotation.switched), await me(rotation.finished)]).toEqual([200, 401]);
  expect((await post(rotation.switched, '/consumer/auth/logout', {}, headers)).statusCode).toBe(204);
  expect(await me(api.app)).toBe(401);
});

test('429 for a contact that reached its limit, partly before the rotation', async ({ rotation }) => {
  const email = newEmail();
  const apps = Array.from({ length: OTP_LIMITS.requestsMax }, (_, n) =>
    n % 2 === 0 ? rotation.prepared : rotation.switched,
  );
  for (const app of apps) expect((await post(app, '/consumer/auth/request-otp', { email })).statusCode).toBe(200);
  for (const app of [rotation.prepared, rotation.switched])
    expect((await post(app, '/consumer/auth/request-otp', { email })).statusCode).toBe(429);
});

test('one consumer for two sign-ins of one contact at once, one on each side of the rotation', async ({
  api,
  rotation,
}) => {
  const email = newEmail();
  const apps = [rotation.prepared, rotation.switched];
  const given = await Promise.all(apps.map((app) => post(app, '/consumer/auth/request-otp', { email })));
  const answers = await Promise.all(
    apps.map((app, n) => verify(app, given[n]?.json().challenge_id, given[n]?.json().sandbox_code)),
  );
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200]);
  const consumers = answers.map((answer) => String(answer.json().consumer_id));
  expect(consumers[0]).toBe(consumers[1]);
  expect(await api.connection.db.$count(consumerSessions, eq(consumerSessions.consumerId, consumers[0] ?? ''))).toBe(2);
});

test('200 for a contact that got a second consumer while the old pepper was missing, also once that is back', async ({
  api,
  rotation,
}) => {
  const signIn = async (app: FastifyInstance, email: string) => {
    const { challenge_id, sandbox_code: code } = (await post(app, '/consumer/auth/request-otp', { email })).json();
    const answer = await post(app, '/consumer/auth/verify-otp', { challenge_id, code });
    return [answer.statusCode, answer.json().consumer_id];
  };
  // Either hash may come first in the index.
  for (const email of Array.from({ length: 8 }, newEmail)) {
    const [, first] = await signIn(api.app, email);
    const [, second] = await signIn(rotation.finished, email);
    expect(second).not.toBe(first);
    expect(await signIn(rotation.switched, email)).toEqual([200, second]);
  }
});
