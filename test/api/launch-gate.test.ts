import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { GATES } from '../../domain/gate.ts';
import { environmentName, RUNTIME_ENVIRONMENTS } from '../../domain/runtime.ts';
import { type Caller, createTestApi, type TestApi } from '../support/api.ts';
import { insertGateEvidence, withoutGateStore } from '../support/gate.ts';
import { jsonOf } from '../support/partner.ts';

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
  const closed = (reason: string) => GATES.map((gate) => ({ gate, open: false, reason, evidence: null, expires_at: null }));

  test('401 without a key', async () => {
    expect((await api.call(null, 'GET', '/v2/launch-gates')).statusCode).toBe(401);
  });

  test('every gate is closed without evidence, and while evidence of other environments opens theirs', async () => {
    const expected = { environment: environmentName(runtime), open: false, gates: closed('no_evidence') };
    expect(await read()).toEqual(expected);
    for (const other of RUNTIME_ENVIRONMENTS.filter((candidate) => candidate !== runtime)) await insertGateEvidence(api.connection.db, environmentName(other));
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
        gate === 'rail_admission' ? { gate, open: false, reason: 'no_live_adapter', ...shown } : { gate, open: true, reason: null, ...shown },
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
    expect(gates.find(({ gate }: { gate: string }) => gate === 'operator_approval')).toMatchObject({ open: false, reason: 'not_approved' });
  });
});
