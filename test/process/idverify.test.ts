/** The identity provider's client, against a server that checks the requests as the provider does. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { test as base, describe, expect } from 'vitest';
import type { ApplicantOrder, IdentityProvider } from '../../domain/idverify.ts';
import { createIdverify } from '../../process/idverify.ts';
import { FILE, opening } from '../support/fixture.ts';
import { type Received, startHttpServer } from '../support/http-server.ts';

const APP_TOKEN = 'app-token-0123456789abcdef0123456789';
const SECRET_KEY = 'secret-key-0123456789abcdef012345678';
const NOW = new Date('2026-11-21T08:00:00.000Z');

type Request = Omit<Received, 'body'> & { readonly body: string };
type Reply = { readonly status: number; readonly body: string; readonly headers?: Record<string, string> } | 'silence';

/** The provider's server. A test may replace its replies; they are reset after each test. */
type Provider = {
  readonly baseUrl: string;
  readonly close: () => Promise<void>;
  requests: Request[];
  replies: (request: Request) => Reply;
  /** What the client logged. */
  warnings: unknown[];
};

const applicants = new Map<string, string>();

/** Answers like the provider: one applicant for each external user id, and 409 for a second one. */
const likeTheProvider = ({ method, path, body }: Request): Exclude<Reply, 'silence'> => {
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

const isSigned = ({ method, path, body, headers }: Request): boolean => {
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

async function startProvider(): Promise<Provider> {
  const { url: baseUrl, close } = await startHttpServer((response, received) => {
    const request = { ...received, body: received.body.toString() };
    provider.requests.push(request);
    const reply = isSigned(request) ? provider.replies(request) : { status: 401, body: '{}' };
    if (reply === 'silence') return;
    response
      .writeHead(reply.status, { 'content-type': 'application/json', ...('headers' in reply ? reply.headers : {}) })
      .end(reply.body);
  });
  const provider: Provider = { baseUrl, close, requests: [], replies: likeTheProvider, warnings: [] };
  return provider;
}

type Settings = Partial<{ baseUrl: string; appToken: string; secretKey: string; deadlineMs: number }>;

const test = base
  .extend(
    'provider',
    FILE,
    opening(startProvider, (provider) => provider.close()),
  )
  /** The client of a runtime, with credentials or without. */
  .extend('create', FILE, ({ provider: { baseUrl } }) => {
    return (runtime: 'local-sandbox' | 'remote-sandbox' | 'production', configured: boolean) =>
      createIdverify({
        runtime,
        settings: configured ? { baseUrl, appToken: APP_TOKEN, secretKey: SECRET_KEY } : undefined,
        now: () => NOW,
        log: { warn: () => undefined },
      });
  })
  .extend('adapter', FILE, ({ provider }) => ({ deadlineMs, ...given }: Settings = {}): IdentityProvider => {
    const settings = { baseUrl: provider.baseUrl, appToken: APP_TOKEN, secretKey: SECRET_KEY, ...given };
    return (
      createIdverify({
        runtime: 'remote-sandbox',
        settings,
        now: () => NOW,
        log: { warn: (...line) => provider.warnings.push(line) },
        ...(deadlineMs === undefined ? {} : { deadlineMs }),
      }) ?? expect.fail('not configured')
    );
  });
test.afterEach(({ provider }) => {
  provider.replies = likeTheProvider;
  provider.requests = [];
  provider.warnings = [];
});

const order = (overrides: Partial<ApplicantOrder> = {}): ApplicantOrder => ({
  verificationId: crypto.randomUUID(),
  verificationType: 'kyc',
  levelName: 'basic kyc&level',
  email: 'marcia.secret@acme.example',
  phone: '+18765550123',
  ...overrides,
});

/** What a worker and the API ask for, one after the other. */
async function askBoth(provider: IdentityProvider, given: ApplicantOrder = order()) {
  const applicantId = await provider.createApplicant(given);
  return { applicantId, ...(await provider.issueToken(given)) };
}

describe('the provider of a runtime', () => {
  test('is none in a remote runtime without credentials', ({ create }) => {
    expect(create('remote-sandbox', false)).toBeUndefined();
    expect(create('production', false)).toBeUndefined();
    expect(create('production', true)?.simulation).toBe(false);
  });

  test('is the simulation in the local sandbox, whatever is configured; it sends no request', async ({
    provider,
    create,
  }) => {
    const simulated = create('local-sandbox', true) ?? expect.fail('none');
    const given = order();
    const [one, two] = [await simulated.createApplicant(given), await simulated.createApplicant(given)];
    expect(simulated.simulation).toBe(true);
    expect(one).toMatch(/^sim_[0-9a-f]{24}$/);
    expect(two).toBe(one);
    expect((await simulated.issueToken(given)).token).not.toBe((await simulated.issueToken(given)).token);
    expect(provider.requests).toEqual([]);
  });
});

describe('a failure of the provider', () => {
  /** Only the applicant's answer is wrong. */
  const applicantAnswer =
    (body: string) =>
    (request: Request): Reply =>
      request.path.startsWith('/resources/applicants?') ? { status: 201, body } : likeTheProvider(request);
  const unusable: [string, Reply | ((request: Request) => Reply)][] = [
    ['a refusal', { status: 401, body: '{}' }],
    ['a server error', { status: 500, body: 'Marcia Secret: internal error' }],
    ['a redirect, which is not followed', { status: 302, body: '', headers: { location: 'http://127.0.0.1:1/' } }],
    ['an answer that is not JSON', { status: 201, body: '<html>' }],
    ['JSON without an id', applicantAnswer('{"id":""}')],
    ['the applicant of another user', applicantAnswer('{"id":"app-0","externalUserId":"another"}')],
    ['an id that PostgreSQL cannot store', applicantAnswer('{"id":"a\\u0000"}')],
    [
      'an answer that is too large',
      (request) => {
        const { status, body } = likeTheProvider(request);
        return { status, body: `${body}${' '.repeat(100_000)}` };
      },
    ],
    [
      'an existing applicant that is not found',
      ({ method }) => (method === 'GET' ? { status: 404, body: '{}' } : { status: 409, body: '{}' }),
    ],
    [
      'an answer without a token',
      (request) => (request.path.includes('accessTokens') ? { status: 200, body: '{}' } : likeTheProvider(request)),
    ],
    [
      'a token for another user',
      (request) =>
        request.path.includes('accessTokens')
          ? { status: 200, body: '{"token":"sdk-token","userId":"another"}' }
          : likeTheProvider(request),
    ],
    ['no answer before the deadline', 'silence'],
  ];

  test.for(unusable)(
    '%s: temporarily_unavailable, and the log has neither its text nor the person',
    async ([_case, reply], { provider, adapter }) => {
      provider.replies = typeof reply === 'function' ? reply : () => reply;
      // With its usual deadline every other answer arrives before that.
      const attempt = askBoth(adapter(reply === 'silence' ? { deadlineMs: 300 } : {}));
      await expect(attempt).rejects.toMatchObject({ code: 'temporarily_unavailable' });
      expect(provider.warnings).toHaveLength(1);
      for (const secret of ['arcia', 'secret', '+1876', APP_TOKEN])
        expect(JSON.stringify(provider.warnings)).not.toContain(secret);
    },
  );

  test.for<[string, Settings, number]>([
    ['a refused connection', { baseUrl: 'http://127.0.0.1:1' }, 0],
    ['a wrong secret key', { secretKey: `${SECRET_KEY}x` }, 1],
  ])('%s: temporarily_unavailable', async ([_case, settings, requests], { provider, adapter }) => {
    await expect(askBoth(adapter(settings))).rejects.toMatchObject({ code: 'temporarily_unavailable' });
    expect(provider.requests).toHaveLength(requests);
  });
});

describe('an applicant', () => {
  test('is created for the verification, with the contact of the profile, by signed requests', async ({
    provider,
    adapter,
  }) => {
    const given = order();
    expect(await askBoth(adapter(), given)).toEqual({
      applicantId: applicants.get(given.verificationId),
      token: 'sdk-secret-token',
      expiresAt: new Date(NOW.getTime() + 600_000),
    });
    expect(provider.requests.every(isSigned)).toBe(true);
    expect(provider.requests.map(({ method, path, body }) => [method, path, JSON.parse(body)])).toEqual([
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

  test('is found when an earlier attempt created it', async ({ provider, adapter }) => {
    const given = order({ verificationType: 'kyb', email: null, phone: null });
    const first = await askBoth(adapter(), given);
    const again = await askBoth(adapter(), given);
    expect(again.applicantId).toBe(first.applicantId);
    expect(provider.requests.map(({ method }) => method)).toEqual(['POST', 'POST', 'POST', 'GET', 'POST']);
    expect(JSON.parse(provider.requests[0]?.body ?? '')).toEqual({
      externalUserId: given.verificationId,
      type: 'company',
    });
  });

  test('is created under a base URL with a path, which is signed too', async ({ provider, adapter }) => {
    provider.replies = ({ path, ...request }) => likeTheProvider({ ...request, path: path.replace('/gateway', '') });
    await adapter({ baseUrl: `${provider.baseUrl}/gateway/` }).createApplicant(order());
    expect(provider.requests[0]?.path).toMatch(/^\/gateway\/resources\/applicants/);
  });
});
