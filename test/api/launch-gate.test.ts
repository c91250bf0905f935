import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { GATES } from '../../domain/gate.ts';
import { environmentName, RUNTIME_ENVIRONMENTS } from '../../domain/runtime.ts';
import { type Caller, createTestApi, type TestApi } from '../support/api.ts';
import { digestTables } from '../support/database.ts';
import { insertGateEvidence, withoutGateStore } from '../support/gate.ts';
import { createRecipient, jsonOf, settleBody } from '../support/partner.ts';

describe.each(RUNTIME_ENVIRONMENTS)('GET /v2/launch-gates in %s', (runtime) => {
  let api: TestApi;
  let caller: Caller;

  beforeAll(async () => {
    api = await createTestApi({ runtime });
    caller = await api.createCaller('read');
  });
  afterAll(() => api.close());

  const read = async () => {
    const answer = await api.call(caller, 'GET', '/v2/launch-gates');
    expect(answer.statusCode, answer.body).toBe(200);
    return jsonOf(answer);
  };
  const closed = (reason: string) =>
    GATES.map((gate) => ({ gate, open: false, reason, evidence: null, expires_at: null }));

  test('401 without a key', async () => {
    expect((await api.call(null, 'GET', '/v2/launch-gates')).statusCode).toBe(401);
  });

  test('every gate is closed without evidence, and while evidence of other environments opens theirs', async () => {
    const expected = { environment: environmentName(runtime), open: false, gates: closed('no_evidence') };
    expect(await read()).toEqual(expected);
    for (const other of RUNTIME_ENVIRONMENTS.filter((candidate) => candidate !== runtime))
      await insertGateEvidence(api.connection.db, environmentName(other));
    expect(await read()).toEqual(expected);
  });

  test('every gate is closed while the store cannot be read', async () => {
    await withoutGateStore(api.connection.db, async () => {
      expect(await read()).toEqual({ environment: environmentName(runtime), open: false, gates: closed('unreadable') });
    });
  });

  test('is never open, with every gate proven in every corridor: there is no live adapter', async () => {
    const expiresAt = new Date(Date.now() + 3_600_000);
    await insertGateEvidence(api.connection.db, environmentName(runtime), { changes: { expiresAt } });
    const shown = { evidence: `sha256:${'07'.repeat(32)}`, expires_at: expiresAt.toISOString() };
    expect(await read()).toEqual({
      environment: environmentName(runtime),
      open: false,
      gates: GATES.map((gate) =>
        gate === 'rail_admission'
          ? { gate, open: false, reason: 'no_live_adapter', ...shown }
          : { gate, open: true, reason: null, ...shown },
      ),
    });
  });

  test('one corridor closes a gate', async () => {
    const newer = { recordedAt: new Date(Date.now() - 1_000) };
    await insertGateEvidence(api.connection.db, environmentName(runtime), {
      gates: ['operator_approval'],
      corridors: ['US-LC'],
      operators: ['ana'],
      changes: newer,
    });
    const { gates } = await read();
    expect(gates.find(({ gate }: { gate: string }) => gate === 'operator_approval')).toMatchObject({
      open: false,
      reason: 'not_approved',
    });
  });
});

describe('acceptance in the local sandbox', () => {
  let api: TestApi;
  let caller: Caller;
  let recipientId: string;

  beforeAll(async () => {
    api = await createTestApi();
    caller = await api.createCaller();
    recipientId = await createRecipient({ api }, caller);
  });
  afterAll(() => api.close());

  const settle = (key: string) =>
    api.call(caller, 'POST', '/v2/settle', settleBody(recipientId), { 'idempotency-key': key });

  test('503 once a gate of the corridor was closed by hand, and nothing is written; a replay answers as the first time', async () => {
    const [before, after] = [crypto.randomUUID(), crypto.randomUUID()];
    const first = await settle(before);
    expect(first.statusCode, first.body).toBe(202);
    const revoked = { revokedAt: new Date(), revokedBy: 'ana' };
    await insertGateEvidence(api.connection.db, 'local sandbox', {
      gates: ['provider_evidence'],
      corridors: ['US-JM'],
      changes: revoked,
    });
    const digest = await digestTables(api.connection.pool);
    const refused = await settle(after);
    expect([refused.statusCode, jsonOf(refused).code, jsonOf(refused).gates]).toEqual([
      503,
      'launch_gates_closed',
      [{ gate: 'provider_evidence', reason: 'revoked' }],
    ]);
    const replayed = await settle(before);
    expect([replayed.statusCode, replayed.body]).toEqual([202, first.body]);
    expect(await digestTables(api.connection.pool)).toEqual(digest);
    const newer = { recordedAt: new Date(Date.now() - 1_000) };
    await insertGateEvidence(api.connection.db, 'local sandbox', {
      gates: ['provider_evidence'],
      corridors: ['US-JM'],
      changes: newer,
    });
    expect((await settle(after)).statusCode).toBe(202);
  });

  test('nothing is accepted while the store cannot be read', async () => {
    await withoutGateStore(api.connection.db, async () =>
      expect((await settle(crypto.randomUUID())).statusCode).toBe(500),
    );
  });
});
