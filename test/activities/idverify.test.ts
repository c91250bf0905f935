/** The identity provider's adapter against a server that checks what it is sent as the provider does. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { ApplicantOrder, IdentityProvider } from '../../domain/idverify.ts';
import { createIdverify } from '../../process/idverify.ts';

const APP_TOKEN = 'app-token-0123456789abcdef0123456789';
const SECRET_KEY = 'secret-key-0123456789abcdef012345678';
const NOW = new Date('2026-11-21T08:00:00.000Z');

type Request = {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly headers: IncomingMessage['headers'];
};
type Reply = { readonly status: number; readonly body: string; readonly headers?: Record<string, string> } | 'silence';

let server: Server;
let baseUrl: string;
let requests: Request[] = [];
let replies: (request: Request) => Reply;
let warnings: unknown[] = [];
const applicants = new Map<string, string>();

/** As the provider: an applicant per external user id, and a 409 for a second one. */
const likeTheProvider = ({ method, path, body }: Request): Reply => {
  const given = body === '' ? {} : JSON.parse(body);
  if (method === 'POST' && path.startsWith('/resources/applicants?levelName=')) {
    if (applicants.has(given.externalUserId)) return { status: 409, body: '{"code":409,"description":"exists"}' };
    applicants.set(given.externalUserId, `app-${applicants.size + 1}`);
    return { status: 201, body: JSON.stringify({ id: applicants.get(given.externalUserId) }) };
  }
  const found = /^\/resources\/applicants\/-;externalUserId=([^/]+)\/one$/.exec(path)?.[1];
  if (method === 'GET' && found)
    return { status: 200, body: JSON.stringify({ id: applicants.get(decodeURIComponent(found)) }) };
  if (method === 'POST' && path === '/resources/accessTokens/sdk')
    return { status: 200, body: JSON.stringify({ token: 'sdk-secret-token', userId: given.userId }) };
  return { status: 404, body: '{}' };
};

const signedRightly = ({ method, path, body, headers }: Request): boolean => {
  const timestamp = String(headers['x-app-access-ts']);
  const expected = createHmac('sha256', SECRET_KEY).update(timestamp).update(method).update(path).update(body).digest();
  const given = Buffer.from(String(headers['x-app-access-sig']), 'hex');
  return (
    headers['x-app-token'] === APP_TOKEN &&
    timestamp === '1795248000' &&
    given.length === expected.length &&
    timingSafeEqual(given, expected)
  );
};

beforeAll(async () => {
  server = createServer(async (incoming, outgoing) => {
    const parts: Buffer[] = [];
    for await (const part of incoming) parts.push(part);
    const request = {
      method: incoming.method ?? '',
      path: incoming.url ?? '',
      body: Buffer.concat(parts).toString(),
      headers: incoming.headers,
    };
    requests.push(request);
    const reply = signedRightly(request) ? replies(request) : { status: 401, body: '{}' };
    if (reply === 'silence') return;
    outgoing
      .writeHead(reply.status, { 'content-type': 'application/json', ...('headers' in reply ? reply.headers : {}) })
      .end(reply.body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  replies = likeTheProvider;
});

afterEach(() => {
  replies = likeTheProvider;
  requests = [];
  warnings = [];
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const adapter = (
  settings: Partial<{ baseUrl: string; appToken: string; secretKey: string; deadlineMs: number }> = {},
): IdentityProvider => {
  const { deadlineMs, ...given } = settings;
  return (
    createIdverify({
      runtime: 'remote-sandbox',
      settings: { baseUrl, appToken: APP_TOKEN, secretKey: SECRET_KEY, ...given },
      now: () => NOW,
      log: { warn: (...line) => warnings.push(line) },
      ...(deadlineMs === undefined ? {} : { deadlineMs }),
    }) ?? expect.fail('not configured')
  );
};

const order = (overrides: Partial<ApplicantOrder> = {}): ApplicantOrder => ({
  verificationId: crypto.randomUUID(),
  verificationType: 'kyc',
  levelName: 'basic kyc&level',
  email: 'marcia.secret@acme.example',
  phone: '+18765550123',
  ...overrides,
});

describe('which provider a runtime has', () => {
  const of = (runtime: 'local-sandbox' | 'remote-sandbox' | 'production', configured: boolean) =>
    createIdverify({
      runtime,
      settings: configured ? { baseUrl, appToken: APP_TOKEN, secretKey: SECRET_KEY } : undefined,
      now: () => NOW,
      log: { warn: () => undefined },
    });

  test('none remotely without credentials', () => {
    expect(of('remote-sandbox', false)).toBeUndefined();
    expect(of('production', false)).toBeUndefined();
    expect(of('production', true)?.simulation).toBe(false);
  });

  test('the simulation in the local sandbox, whatever is configured; it reaches nobody', async () => {
    const simulated = of('local-sandbox', true) ?? expect.fail('none');
    const given = order();
    const [one, two] = [await simulated.createApplicant(given), await simulated.createApplicant(given)];
    expect(simulated.simulation).toBe(true);
    expect(one.applicantId).toMatch(/^sim_[0-9a-f]{24}$/);
    expect(two.applicantId).toBe(one.applicantId);
    expect(two.sdkAccessToken).not.toBe(one.sdkAccessToken);
    expect(requests).toEqual([]);
  });
});

describe('what the provider refuses or breaks', () => {
  const unusable: [string, Reply | ((request: Request) => Reply)][] = [
    ['a refusal', { status: 401, body: '{}' }],
    ['a fault', { status: 500, body: 'Marcia Secret: internal error' }],
    ['a redirect, which is not followed', { status: 302, body: '', headers: { location: 'http://127.0.0.1:1/' } }],
    ['no JSON', { status: 201, body: '<html>' }],
    ['JSON without an id', { status: 201, body: '{"id":""}' }],
    ['an answer without end', { status: 201, body: `{"id":"${'x'.repeat(100_000)}"}` }],
    [
      'an applicant that exists and is not found',
      ({ method }) => (method === 'GET' ? { status: 404, body: '{}' } : { status: 409, body: '{}' }),
    ],
    [
      'no token',
      (request) => (request.path.includes('accessTokens') ? { status: 200, body: '{}' } : likeTheProvider(request)),
    ],
    ['silence, up to the deadline', 'silence'],
  ];

  test.each(unusable)(
    '%s: temporarily_unavailable, and the log tells neither text nor person',
    async (_case, reply) => {
      replies = typeof reply === 'function' ? reply : () => reply;
      const attempt = adapter({ deadlineMs: 300 }).createApplicant(order());
      await expect(attempt).rejects.toMatchObject({ code: 'temporarily_unavailable' });
      expect(warnings).toHaveLength(1);
      for (const secret of ['arcia', 'secret', '+1876', APP_TOKEN])
        expect(JSON.stringify(warnings)).not.toContain(secret);
    },
  );

  test('nobody there: temporarily_unavailable', async () => {
    await expect(adapter({ baseUrl: 'http://127.0.0.1:1' }).createApplicant(order())).rejects.toMatchObject({
      code: 'temporarily_unavailable',
    });
  });

  test('a wrong secret key is refused by the provider', async () => {
    await expect(adapter({ secretKey: `${SECRET_KEY}x` }).createApplicant(order())).rejects.toMatchObject({
      code: 'temporarily_unavailable',
    });
    expect(requests).toHaveLength(1);
  });
});

describe('an applicant', () => {
  test('is made for the verification, with the contact of the profile, each request signed; the token expires', async () => {
    const given = order();
    const applicant = await adapter().createApplicant(given);
    expect(applicant).toEqual({
      applicantId: applicants.get(given.verificationId),
      sdkAccessToken: 'sdk-secret-token',
      sdkAccessTokenExpiresAt: new Date(NOW.getTime() + 600_000),
    });
    expect(requests.every(signedRightly)).toBe(true);
    expect(requests.map(({ method, path, body }) => [method, path, JSON.parse(body)])).toEqual([
      [
        'POST',
        '/resources/applicants?levelName=basic%20kyc%26level',
        { externalUserId: given.verificationId, type: 'individual', email: given.email, phone: given.phone },
      ],
      [
        'POST',
        '/resources/accessTokens/sdk',
        { userId: given.verificationId, levelName: 'basic kyc&level', ttlInSecs: 600 },
      ],
    ]);
  });

  test('is found when an earlier attempt made it', async () => {
    const given = order({ verificationType: 'kyb', email: null, phone: null });
    const first = await adapter().createApplicant(given);
    const again = await adapter().createApplicant(given);
    expect(again.applicantId).toBe(first.applicantId);
    expect(requests.map(({ method }) => method)).toEqual(['POST', 'POST', 'POST', 'GET', 'POST']);
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual({ externalUserId: given.verificationId, type: 'company' });
  });

  test('is made under a base address with a path of its own, which is signed too', async () => {
    replies = ({ path, ...request }) => likeTheProvider({ ...request, path: path.replace('/gateway', '') });
    await adapter({ baseUrl: `${baseUrl}/gateway/` }).createApplicant(order());
    expect(requests[0]?.path).toMatch(/^\/gateway\/resources\/applicants/);
  });
});
