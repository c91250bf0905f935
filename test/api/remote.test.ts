/**
 * What a remote runtime answers, operation by operation (`operations.csv`, column `remote`): after authentication and
 * validation, and before anything is stored.
 */
import { describe, expect } from 'vitest';
import { GATES } from '../../domain/gate.ts';
import { environmentName } from '../../domain/runtime.ts';
import { SCOPES, type Scope, scopeCovers } from '../../domain/scope.ts';
import { bodyOf, headersOf, type Ids, urlOf } from '../attack/sample.ts';
import { type Attack, type Credentials, createAttack } from '../attack/world.ts';
import { nameOf, OPERATIONS, type OperationRow } from '../contract/operations.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { cardprocBody, signCardproc } from '../support/cardproc.ts';
import type { SeenAnswer } from '../support/conformance.ts';
import { insertConsumerSession } from '../support/consumer.ts';
import { digestTables } from '../support/database.ts';
import { FILE, openApis, withApi } from '../support/fixture.ts';
import { insertGateEvidence } from '../support/gate.ts';
import { createRecipient, jsonOf } from '../support/partner.ts';
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

/** Who sends the requests of one runtime, and the objects that they name. */
type World = {
  readonly api: TestApi;
  readonly attack: Attack;
  readonly caller: Credentials;
  /** A request may end this one. */
  readonly otherSession: string;
  /** Every other id is unknown. */
  readonly ids: Ids & { readonly settlement_id: string };
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

/** An event about the world's settlement. */
const cardprocBytes = ({ ids }: World, livemode: boolean, type?: string): Buffer =>
  Buffer.from(JSON.stringify({ ...cardprocBody(ids.settlement_id, {}, type), livemode }));
const postCardproc = ({ api }: World, body: Buffer, headers = signCardproc(body)) =>
  api.call(null, 'POST', '/v2/webhooks/cardproc', body, headers);

async function createWorld(api: TestApi): Promise<World> {
  const partner = await api.createCaller();
  const environment = environmentName(api.deps.runtime);
  const { settlement, certId } = await insertCertifiedSettlement(api.connection.db, partner.orgId, { environment });
  const recipientId = await createRecipient(api, partner);
  // A remote runtime without a sender sends no codes, so the sessions are inserted.
  const [session, otherSession] = [await insertConsumerSession(api), await insertConsumerSession(api)];
  const keyOf = async (scope: Scope) => [scope, await api.createKey(partner.orgId, scope)] as const;
  return {
    api,
    attack: createAttack(api),
    caller: { partner, sessionToken: session.token },
    otherSession: otherSession.token,
    ids: {
      org_id: partner.orgId,
      recipient_id: recipientId,
      settlement_id: settlement.settlementId,
      cert_id: certId,
    },
    keys: Object.fromEntries(await Promise.all(SCOPES.map(keyOf))) as Record<Scope, Caller>,
    trace: await traceOf(api),
  };
}

/** What a change changes. */
const CHANGED = ['email', 'description'];

/** Calls an operation with a valid request, or with another body or credential. */
function call(
  { attack, caller, otherSession, ids }: World,
  { method, path }: OperationRow,
  changes: { readonly by?: Credentials | null; readonly body?: unknown } = {},
): Promise<SeenAnswer> {
  const name = nameOf({ method, path });
  const operation = attack.operations.find((described) => described.name === name) ?? expect.fail(`no ${name}`);
  const own = path === '/consumer/auth/logout' ? { ...caller, sessionToken: otherSession } : caller;
  const { by = own, body = bodyOf(operation, ids, CHANGED) } = changes;
  // What is deleted is an unknown object: the others stay.
  const url = urlOf(operation, method === 'DELETE' ? {} : ids);
  return attack.send(operation, by, { url, body, headers: headersOf(operation) });
}

const answerOf = ({ statusCode: status, headers, body }: SeenAnswer) => ({
  status,
  code: `${headers['content-type']}`.includes('problem') ? JSON.parse(body).code : undefined,
});

const named = OPERATIONS.map((row) => [nameOf(row), row] as const);
const isRefused = ({ remote }: OperationRow): boolean => /^50\d [a-z_]+$/.test(remote);
const refused = named.filter(([, row]) => isRefused(row));
const theSame = named.filter(([, row]) => !isRefused(row));

/** Nothing was written since then, not even to the outbox, and nothing was dispatched: no refusal has done so. */
const expectNoTrace = async ({ api, trace }: World, since = trace): Promise<void> =>
  expect(await traceOf(api)).toEqual(since);

describe.each(REMOTE)('the runtime %s', (runtime) => {
  test.for(refused.filter(([, { auth }]) => auth === 'api_key' || auth === 'session'))(
    '401 without a credential and 403 for a lesser scope come first: %s',
    async ([_name, row], { worlds }) => {
      const world = worlds[runtime];
      expect(answerOf(await call(world, row, { by: null }))).toEqual({ status: 401, code: 'credential_missing' });
      for (const scope of SCOPES.filter((held) => row.scope !== undefined && !scopeCovers(held, row.scope))) {
        const by = { ...world.caller, partner: world.keys[scope] };
        expect(answerOf(await call(world, row, { by }))).toEqual({ status: 403, code: 'scope_insufficient' });
      }
    },
  );

  test.for(refused.filter(([, { method }]) => method === 'POST'))(
    '422 for an invalid body comes before the refusal: %s',
    async ([_name, row], { worlds }) => {
      const answer = await call(worlds[runtime], row, { body: { no_such_field: true } });
      expect(answer.statusCode).toBe(422);
      expect(JSON.stringify(JSON.parse(answer.body).detail)).toContain('no_such_field');
    },
  );

  test.for(refused)('%s answers as the interface says, and nothing is written', async ([_name, row], { worlds }) => {
    const [status = '', code = ''] = row.remote.split(' ');
    const answer = await call(worlds[runtime], row);
    expect(answerOf(answer)).toEqual({ status: Number(status), code });
    expect(answer.headers['retry-after']).toBeUndefined();
    const gates = GATES.map((gate) => ({ gate, reason: 'no_evidence' }));
    expect(JSON.parse(answer.body).gates).toEqual(code === 'launch_gates_closed' ? gates : undefined);
    await expectNoTrace(worlds[runtime]);
  });

  test('503 for a dispute event, 401 for an invalid signature, and nothing is stored', async ({ worlds }) => {
    const world = worlds[runtime];
    const endings = ['created', 'closed', 'updated', 'funds_withdrawn', 'funds_reinstated', 'of_a_later_version'];
    for (const type of endings.map((ending) => `charge.dispute.${ending}`)) {
      for (const livemode of [true, false]) {
        const body = cardprocBytes(world, livemode, type);
        for (const headers of [{}, signCardproc(body, 'another-secret-0123456789abcdefghij')])
          expect(answerOf(await postCardproc(world, body, headers))).toEqual({
            status: 401,
            code: 'signature_invalid',
          });
        expect(answerOf(await postCardproc(world, body))).toEqual({ status: 503, code: 'launch_gates_closed' });
      }
    }
    await expectNoTrace(world);
  });

  test('503 for a dispute event with nothing but an envelope, and nothing is stored', async ({ worlds }) => {
    const body = Buffer.from('{"id":"evt_1","type":"charge.dispute.created","data":null}');
    const answer = await postCardproc(worlds[runtime], body);
    expect(answerOf(answer)).toEqual({ status: 503, code: 'launch_gates_closed' });
    await expectNoTrace(worlds[runtime]);
  });

  test.for(theSame)('%s answers as in the local sandbox', async ([_name, row], { worlds, localWorlds }) => {
    const remote = answerOf(await call(worlds[runtime], row));
    expect(remote).toEqual(answerOf(await call(localWorlds[runtime], row)));
    expect(remote.status).toBeLessThan(500);
  });

  test('200 and unmatched for an event of the other mode; one of its own mode is matched', async ({ worlds }) => {
    for (const livemode of [true, false]) {
      const answer = await postCardproc(worlds[runtime], cardprocBytes(worlds[runtime], livemode));
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
      expect(JSON.parse(answer.body).gates).toEqual(onlyTheAdapter);
    }
    const dispute = cardprocBytes(world, runtime === 'production', 'charge.dispute.created');
    expect(jsonOf(await postCardproc(world, dispute)).gates).toEqual(onlyTheAdapter);
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
