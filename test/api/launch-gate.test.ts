import { describe, expect } from 'vitest';
import { GATES } from '../../domain/gate.ts';
import { environmentName, RUNTIME_ENVIRONMENTS } from '../../domain/runtime.ts';
import type { TestApi } from '../support/api.ts';
import { FILE, openApis, withApi } from '../support/fixture.ts';
import { insertGateEvidence, withoutGateStore } from '../support/gate.ts';
import { createRecipient, jsonOf, settleBody } from '../support/partner.ts';
import { expectRefused } from '../support/refusal.ts';

const test = withApi()
  .extend('apis', FILE, openApis())
  .extend('api', FILE, ({ apis }) => apis['local-sandbox'])
  .extend('recipientId', FILE, ({ api, partner }) => createRecipient(api, partner))
  .extend(
    'settle',
    FILE,
    ({ api, partner, recipientId }) =>
      (key: string) =>
        api.call(partner, 'POST', '/v2/settle', settleBody(recipientId), { 'idempotency-key': key }),
  );

describe('GET /v2/launch-gates', () => {
  const read = async (api: TestApi) => {
    const answer = await api.call(await api.createCaller('read'), 'GET', '/v2/launch-gates');
    expect(answer.statusCode, answer.body).toBe(200);
    return jsonOf(answer);
  };
  const closed = (reason: string) =>
    GATES.map((gate) => ({ gate, open: false, reason, evidence: null, expires_at: null }));

  test.for(RUNTIME_ENVIRONMENTS)(
    '200 in %s with every gate closed without evidence, also while other environments have evidence',
    async (runtime, { apis }) => {
      const api = apis[runtime];
      const expected = { environment: environmentName(runtime), open: false, gates: closed('no_evidence') };
      expect(await read(api)).toEqual(expected);
      for (const other of RUNTIME_ENVIRONMENTS.filter((candidate) => candidate !== runtime))
        await insertGateEvidence(api.connection.db, environmentName(other));
      expect(await read(api)).toEqual(expected);
    },
  );

  test('200 with every gate closed while the store cannot be read', async ({ apis: { production: api } }) => {
    await withoutGateStore(api.owner.pool, async () => {
      expect(await read(api)).toEqual({ environment: 'production', open: false, gates: closed('unreadable') });
    });
  });

  test('200 never open, with evidence for every gate in every corridor: there is no live adapter', async ({
    apis: { production: api },
  }) => {
    const expiresAt = new Date(Date.now() + 3_600_000);
    await insertGateEvidence(api.connection.db, 'production', { changes: { expiresAt } });
    const shown = { evidence: `sha256:${'07'.repeat(32)}`, expires_at: expiresAt.toISOString() };
    expect(await read(api)).toEqual({
      environment: 'production',
      open: false,
      gates: GATES.map((gate) =>
        gate === 'rail_admission'
          ? { gate, open: false, reason: 'no_live_adapter', ...shown }
          : { gate, open: true, reason: null, ...shown },
      ),
    });
    const newer = { recordedAt: new Date(Date.now() - 1_000) };
    const oneCorridor = { gates: ['operator_approval'], corridors: ['US-LC'], operators: ['ana'], changes: newer };
    await insertGateEvidence(api.connection.db, 'production', oneCorridor);
    const { gates } = await read(api);
    expect(gates).toContainEqual(expect.objectContaining({ gate: 'operator_approval', reason: 'not_approved' }));
  });
});

test('503 in a remote runtime names the gates that are closed in the corridor', async ({
  apis: { 'remote-sandbox': api },
}) => {
  await insertGateEvidence(api.connection.db, 'remote sandbox', { corridors: ['US-JM'] });
  const caller = await api.createCaller();
  const closedIn = async (corridor: string) => {
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const refused = await api.call(caller, 'POST', '/v2/settle', settleBody('unknown', { corridor }), headers);
    return jsonOf(refused).gates;
  };
  expect(await closedIn('US-JM')).toEqual([{ gate: 'rail_admission', reason: 'no_live_adapter' }]);
  expect(await closedIn('CA-JM')).toEqual(GATES.map((gate) => ({ gate, reason: 'no_evidence' })));
});

describe('acceptance in the local sandbox', () => {
  test('503 after evidence of the corridor was recorded and not approved, and nothing is written; a replay answers as before', async ({
    api,
    settle,
  }) => {
    const [before, after] = [crypto.randomUUID(), crypto.randomUUID()];
    const first = await settle(before);
    expect(first.statusCode, first.body).toBe(202);
    await insertGateEvidence(api.connection.db, 'local sandbox', {
      gates: ['provider_evidence'],
      corridors: ['US-JM'],
      operators: ['ana'],
    });
    await expectRefused(api, () => settle(after), 503, {
      code: 'launch_gates_closed',
      gates: [{ gate: 'provider_evidence', reason: 'not_approved' }],
    });
    await expectRefused(api, () => settle(before), 202, jsonOf(first));
    const newer = { recordedAt: new Date(Date.now() - 1_000) };
    await insertGateEvidence(api.connection.db, 'local sandbox', {
      gates: ['provider_evidence'],
      corridors: ['US-JM'],
      changes: newer,
    });
    expect((await settle(after)).statusCode).toBe(202);
  });

  test('500 while the store cannot be read', async ({ api, settle }) => {
    await withoutGateStore(api.owner.pool, async () =>
      expect((await settle(crypto.randomUUID())).statusCode).toBe(500),
    );
  });
});
