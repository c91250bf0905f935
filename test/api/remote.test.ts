/**
 * What a remote runtime answers, operation by operation (`operations.csv`, column `remote`): after authentication and
 * validation, and before anything is stored.
 */
import { createHmac, randomUUID } from 'node:crypto';
import type { LightMyRequestResponse } from 'fastify';
import { describe, expect } from 'vitest';
import { GATES } from '../../domain/gate.ts';
import { environmentName } from '../../domain/runtime.ts';
import { SCOPES, type Scope, scopeCovers } from '../../domain/scope.ts';
import { nameOf, OPERATIONS, type OperationRow } from '../contract/operations.ts';
import { type Caller, TEST_SECRETS, type TestApi } from '../support/api.ts';
import { cardprocBody, signCardproc } from '../support/cardproc.ts';
import { insertConsumerSession } from '../support/consumer.ts';
import { digestTables } from '../support/database.ts';
import { FILE, openApis, withApi } from '../support/fixture.ts';
import { insertGateEvidence } from '../support/gate.ts';
import { jsonOf, recipientBody, settleBody } from '../support/partner.ts';
import { insertCertifiedSettlement } from '../support/settlement.ts';

const REMOTE = ['remote-sandbox', 'production'] as const;
const test = withApi()
  .extend('apis', FILE, openApis())
  .extend('worlds', FILE, async ({ apis }) => ({
    'remote-sandbox': await createWorld(apis['remote-sandbox']),
    production: await createWorld(apis.production),
  }))
  /** A world in the local sandbox for each remote runtime, to compare the answers with. */
  .extend('localWorlds', FILE, async ({ apis }) => ({
    'remote-sandbox': await createWorld(apis['local-sandbox']),
    production: await createWorld(apis['local-sandbox']),
  }));

const NOBODY = '0193a5c0-0000-7000-8000-000000000000';
const IDEMPOTENT = () => ({ 'idempotency-key': randomUUID() });

/** The objects that requests of one runtime name. */
type World = {
  readonly api: TestApi;
  readonly caller: Caller;
  readonly recipientId: string;
  readonly settlementId: string;
  readonly certId: string;
  /** Bearer tokens of two consumers; the tests end the second session. */
  readonly sessions: readonly [string, string];
  /** A key of each scope. */
  readonly keys: Readonly<Record<Scope, Caller>>;
  /** The database and its dispatches once all of this exists. */
  readonly trace: Trace;
};

type Trace = { readonly tables: Readonly<Record<string, string>>; readonly nudges: number };

const traceOf = async (api: TestApi): Promise<Trace> => ({
  tables: await digestTables(api.connection.pool),
  nudges: api.nudges(),
});

type Request = {
  /** Values of the path's identifiers. A missing one becomes an unknown id. */
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
};

/** A valid request for each operation that needs more than unknown ids. */
const REQUESTS: Readonly<Record<string, (world: World) => Request>> = {
  'POST /v2/settle': ({ recipientId }) => ({ body: settleBody(recipientId), headers: IDEMPOTENT() }),
  'GET /v2/settle/{settlement_id}': ({ settlementId }) => ({ path: { settlement_id: settlementId } }),
  'POST /v2/settle/{settlement_id}/cancel': ({ settlementId }) => ({ path: { settlement_id: settlementId } }),
  'POST /v2/estimate': () => ({ body: { corridor: 'US-JM', amount: '250.00', payment_method: 'card' } }),
  'POST /v2/webhooks/cardproc': ({ settlementId }) => cardproc(cardprocBytes(settlementId, false)),
  'POST /v2/webhooks/bankledger': ({ settlementId }) => {
    const data = {
      id: 'ep_1',
      object: 'expected_payment',
      live_mode: false,
      status: 'reconciled',
      amount_reconciled: 100,
      currency: 'USD',
      type: 'ach',
    };
    return signed(
      { id: randomUUID(), event: 'reconciled', data: { ...data, metadata: { settlement_id: settlementId } } },
      TEST_SECRETS.bankledger,
      'x-signature',
    );
  },
  'POST /v2/webhooks/idverify': () => {
    const event = { type: 'applicantPending', applicantId: 'a1', externalUserId: NOBODY, correlationId: randomUUID() };
    const { body, headers } = signed(event, TEST_SECRETS.idverify, 'x-payload-digest');
    return { body, headers: { ...headers, 'x-payload-digest-alg': 'HMAC_SHA256_HEX' } };
  },
  'POST /v2/banklink/link-token': () => ({ body: {} }),
  'POST /v2/banklink/exchange': () => ({ body: { public_token: 'public-sandbox-checking' } }),
  'POST /consumer/banklink/exchange': () => ({ body: { public_token: 'public-sandbox-checking' } }),
  'POST /consumer/auth/request-otp': () => ({ body: { email: 'ana@example.com' } }),
  'POST /consumer/auth/verify-otp': () => ({ body: { challenge_id: NOBODY, code: '000000' } }),
  'POST /consumer/auth/logout': ({ sessions }) => ({ headers: { authorization: `Bearer ${sessions[1]}` } }),
  'POST /consumer/recipients': () => ({ body: consumerRecipient }),
  'POST /consumer/quote': () => ({ body: { corridor: 'US-JM', amount: '250.00', payment_method: 'card' } }),
  'POST /consumer/transfers': ({ recipientId }) => ({ body: settleBody(recipientId), headers: IDEMPOTENT() }),
  'POST /v1/orgs': () => ({ body: { name: 'Acme', country: 'JM', contact_email: 'dev@acme.example' } }),
  'GET /v1/orgs/{org_id}': ({ caller }) => ({ path: { org_id: caller.orgId } }),
  'POST /v1/orgs/{org_id}/keys': ({ caller }) => ({
    path: { org_id: caller.orgId },
    body: { name: 'ci', scope: 'read' },
  }),
  'GET /v1/orgs/{org_id}/keys': ({ caller }) => ({ path: { org_id: caller.orgId } }),
  'POST /v1/recipients': () => ({ body: recipientBody() }),
  'GET /v1/recipients/{recipient_id}': ({ recipientId }) => ({ path: { recipient_id: recipientId } }),
  'PUT /v1/recipients/{recipient_id}': ({ recipientId }) => ({
    path: { recipient_id: recipientId },
    body: { email: 'm@example.com' },
  }),
  'POST /v1/kyc/verify': ({ recipientId, caller }) => ({ body: { recipient_id: recipientId, org_id: caller.orgId } }),
  'POST /v1/kyc/{verification_id}/complete': () => ({ body: { status: 'verified' } }),
  'GET /v1/kyc/status/{recipient_id}': ({ recipientId }) => ({ path: { recipient_id: recipientId } }),
  'POST /v1/kyc/idverify/applicant': ({ recipientId, caller }) => ({
    body: { recipient_id: recipientId, org_id: caller.orgId },
  }),
  'POST /v1/wallets': () => ({
    body: { name: 'Treasury', signers: [{ address: `0x${'1'.repeat(40)}` }], threshold: 1 },
  }),
  'POST /v1/fees/estimate': () => ({ body: { corridor: 'US-JM', amount: '250.00', payment_method: 'card' } }),
  'POST /v1/caribbean/estimate': () => ({ body: { corridor: 'US-JM', amount: '250.00' } }),
  'POST /v1/caribbean/settle': ({ recipientId }) => ({
    body: { corridor: 'US-JM', amount: '250.00', recipient_id: recipientId, payout_rail: 'bank_transfer' },
    headers: IDEMPOTENT(),
  }),
  'GET /v1/caribbean/certificate/{cert_id}': ({ certId }) => ({ path: { cert_id: certId } }),
  'GET /v1/caribbean/certificate/{cert_id}/verify': ({ certId, settlementId }) => ({
    path: { cert_id: certId },
    query: `settlement_id=${settlementId}`,
  }),
  'GET /v1/caribbean/settlements/{settlement_id}': ({ settlementId }) => ({ path: { settlement_id: settlementId } }),
  'POST /v1/webhooks': () => ({ body: { url: 'https://hooks.partner.example/in', event_types: ['*'] } }),
  'PATCH /v1/webhooks/{webhook_id}': () => ({ body: { description: 'other' } }),
  'POST /v2/test-helpers/settlements/{settlement_id}/events': ({ settlementId }) => ({
    path: { settlement_id: settlementId },
    body: { event: 'dispute_opened' },
  }),
  'POST /v2/test-helpers/settlements/{settlement_id}/advance': ({ settlementId }) => ({
    path: { settlement_id: settlementId },
    body: {},
  }),
};

const { kind: _kind, ...consumerRecipient } = recipientBody();

function signed(event: object, secret: string, header: string): { body: Buffer; headers: Record<string, string> } {
  const body = Buffer.from(JSON.stringify(event));
  return { body, headers: { [header]: createHmac('sha256', secret).update(body).digest('hex') } };
}

const cardprocBytes = (settlementId: string, livemode: boolean, type?: string): Buffer =>
  Buffer.from(JSON.stringify({ ...cardprocBody(settlementId, {}, type), livemode }));
const cardproc = (body: Buffer, secret?: string) => ({ body, headers: signCardproc(body, secret) });

async function createWorld(api: TestApi): Promise<World> {
  const caller = await api.createCaller();
  const recipient = await api.call(caller, 'POST', '/v1/recipients', recipientBody());
  const { settlement, certId } = await insertCertifiedSettlement(api.connection.db, caller.orgId);
  // A remote runtime without a sender sends no codes, so the sessions are inserted.
  const [session, otherSession] = [await insertConsumerSession(api), await insertConsumerSession(api)];
  const keyOf = async (scope: Scope) => [scope, await api.createKey(caller.orgId, scope)] as const;
  const keys = Object.fromEntries(await Promise.all(SCOPES.map(keyOf))) as Record<Scope, Caller>;
  return {
    api,
    caller,
    recipientId: jsonOf(recipient).recipient_id,
    settlementId: settlement.settlementId,
    certId,
    sessions: [session.token, otherSession.token],
    keys,
    trace: await traceOf(api),
  };
}

/** Calls an operation with its valid request and these changes. */
function call(
  world: World,
  row: OperationRow,
  changes: { caller?: Caller | null; body?: unknown; session?: null } = {},
): Promise<LightMyRequestResponse> {
  const { path = {}, query, body, headers } = REQUESTS[nameOf(row)]?.(world) ?? {};
  const url = row.path.replace(
    /\{([a-z_]+)\}/g,
    (_all, name: string) => path[name] ?? (name === 'cert_id' ? `CERT-${'0'.repeat(32)}` : NOBODY),
  );
  const usesKey = row.auth === 'api_key' || row.auth === 'optional_api_key';
  const caller = changes.caller === undefined ? (usesKey ? world.caller : null) : changes.caller;
  const session =
    row.auth === 'session' && changes.session !== null ? { authorization: `Bearer ${world.sessions[0]}` } : {};
  const sent = { ...session, ...headers };
  return world.api.call(
    caller,
    row.method,
    query === undefined ? url : `${url}?${query}`,
    'body' in changes ? changes.body : body,
    sent,
  );
}

const answerOf = (answer: LightMyRequestResponse) => ({
  status: answer.statusCode,
  code: `${answer.headers['content-type']}`.includes('problem') ? jsonOf(answer).code : undefined,
});

const refused = OPERATIONS.filter(({ remote }) => /^50\d [a-z_]+$/.test(remote)).map(
  (row) => [nameOf(row), row] as const,
);
const theSame = OPERATIONS.filter(({ remote }) => !/^50\d [a-z_]+$/.test(remote)).map(
  (row) => [nameOf(row), row] as const,
);

/** Nothing was written since then, not even to the outbox, and nothing was dispatched: no refusal has done so. */
const expectNoTrace = async ({ api, trace }: World, since = trace): Promise<void> =>
  expect(await traceOf(api)).toEqual(since);

describe.each(REMOTE)('the runtime %s', (runtime) => {
  test.for(refused.filter(([, { auth }]) => auth === 'api_key'))(
    '401 without a key and 403 for a lesser scope come first: %s',
    async ([_name, row], { worlds }) => {
      const world = worlds[runtime];
      expect(answerOf(await call(world, row, { caller: null }))).toEqual({
        status: 401,
        code: 'credential_missing',
      });
      for (const scope of SCOPES.filter((held) => row.scope !== undefined && !scopeCovers(held, row.scope))) {
        expect(answerOf(await call(world, row, { caller: world.keys[scope] }))).toEqual({
          status: 403,
          code: 'scope_insufficient',
        });
      }
    },
  );

  test.for(refused.filter(([, { auth }]) => auth === 'session'))(
    '401 without a session comes first: %s',
    async ([_name, row], { worlds }) => {
      const world = worlds[runtime];
      expect(answerOf(await call(world, row, { session: null }))).toEqual({
        status: 401,
        code: 'credential_missing',
      });
    },
  );

  test.for(refused.filter(([, { method }]) => method === 'POST'))(
    '422 for an invalid body comes before the refusal: %s',
    async ([_name, row], { worlds }) => {
      const world = worlds[runtime];
      const answer = await call(world, row, { body: { no_such_field: true } });
      expect(answer.statusCode).toBe(422);
      expect(JSON.stringify(jsonOf(answer).detail)).toContain('no_such_field');
    },
  );

  test.for(refused)('%s answers as the interface says, and nothing is written', async ([_name, row], { worlds }) => {
    const world = worlds[runtime];
    const [status = '', code = ''] = row.remote.split(' ');
    const answer = await call(world, row);
    expect(answerOf(answer)).toEqual({ status: Number(status), code });
    expect(answer.headers['retry-after']).toBeUndefined();
    const gates = GATES.map((gate) => ({ gate, reason: 'no_evidence' }));
    expect(jsonOf(answer).gates).toEqual(code === 'launch_gates_closed' ? gates : undefined);
    await expectNoTrace(world);
  });

  test('503 for a dispute event, 401 for an invalid signature, and nothing is stored', async ({ worlds }) => {
    const world = worlds[runtime];
    const endings = ['created', 'closed', 'updated', 'funds_withdrawn', 'funds_reinstated', 'of_a_later_version'];
    for (const type of endings.map((ending) => `charge.dispute.${ending}`)) {
      for (const livemode of [true, false]) {
        const body = cardprocBytes(world.settlementId, livemode, type);
        const forged = cardproc(body, 'another-secret-0123456789abcdefghij').headers;
        const post = (headers: Record<string, string>) =>
          world.api.call(null, 'POST', '/v2/webhooks/cardproc', body, headers);
        expect(answerOf(await post({}))).toEqual({ status: 401, code: 'signature_invalid' });
        expect(answerOf(await post(forged))).toEqual({ status: 401, code: 'signature_invalid' });
        expect(answerOf(await post(cardproc(body).headers))).toEqual({ status: 503, code: 'launch_gates_closed' });
      }
    }
    await expectNoTrace(world);
  });

  test('503 for a dispute event with nothing but an envelope, and nothing is stored', async ({ worlds }) => {
    const world = worlds[runtime];
    const { body, headers } = cardproc(Buffer.from('{"id":"evt_1","type":"charge.dispute.created","data":null}'));
    const answer = await world.api.call(null, 'POST', '/v2/webhooks/cardproc', body, headers);
    expect(answerOf(answer)).toEqual({ status: 503, code: 'launch_gates_closed' });
    await expectNoTrace(world);
  });

  test.for(theSame)('%s answers as in the local sandbox', async ([_name, row], { worlds, localWorlds }) => {
    const world = worlds[runtime];
    const remote = answerOf(await call(world, row));
    expect(remote).toEqual(answerOf(await call(localWorlds[runtime], row)));
    expect(remote.status).toBeLessThan(500);
  });

  test('200 and unmatched for an event of the other mode; one of its own mode is matched', async ({ worlds }) => {
    const world = worlds[runtime];
    for (const livemode of [true, false]) {
      const { body, headers } = cardproc(cardprocBytes(world.settlementId, livemode));
      const answer = await world.api.call(null, 'POST', '/v2/webhooks/cardproc', body, headers);
      expect(answer.statusCode, answer.body).toBe(200);
      expect(jsonOf(answer)).toMatchObject({ duplicate: false, matched: livemode === (runtime === 'production') });
    }
  });

  test('503 for value operations and disputes with evidence for every gate in every corridor', async ({ worlds }) => {
    const world = worlds[runtime];
    await insertGateEvidence(world.api.connection.db, environmentName(runtime));
    const before = await traceOf(world.api);
    const onlyTheAdapter = [{ gate: 'rail_admission', reason: 'no_live_adapter' }];
    for (const row of OPERATIONS.filter(({ remote }) => remote === '503 launch_gates_closed')) {
      const answer = await call(world, row);
      expect(answerOf(answer)).toEqual({ status: 503, code: 'launch_gates_closed' });
      expect(jsonOf(answer).gates).toEqual(onlyTheAdapter);
    }
    const { body, headers } = cardproc(
      cardprocBytes(world.settlementId, runtime === 'production', 'charge.dispute.created'),
    );
    const dispute = await world.api.call(null, 'POST', '/v2/webhooks/cardproc', body, headers);
    expect(jsonOf(dispute).gates).toEqual(onlyTheAdapter);
    await expectNoTrace(world, before);
  });
});

test.for(['local-sandbox', ...REMOTE] as const)(
  'every answer of %s has the same security headers, and a remote one also requires TLS',
  async (runtime, { apis }) => {
    for (const url of ['/health/live', '/v2/settlements', '/unknown']) {
      const { headers } = await apis[runtime].app.inject({ method: 'GET', url });
      expect(headers, url).toMatchObject({
        'content-security-policy': "default-src 'none';frame-ancestors 'none'",
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'origin-agent-cluster': '?1',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
        'x-dns-prefetch-control': 'off',
        'x-download-options': 'noopen',
        'x-frame-options': 'SAMEORIGIN',
        'x-permitted-cross-domain-policies': 'none',
        'x-xss-protection': '0',
        'cache-control': 'no-store',
      });
      expect(headers['strict-transport-security'], url).toBe(
        runtime === 'local-sandbox' ? undefined : 'max-age=31536000; includeSubDomains',
      );
    }
  },
);
