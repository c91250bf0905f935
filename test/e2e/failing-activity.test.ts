/** Workflows whose local activities fail leave the worker to the others (design §4). */
import { expect } from 'vitest';
import { withStack } from '../support/fixture.ts';
import { createRecipient, jsonOf, settleBody, untilStatus } from '../support/partner.ts';

/** As many as the worker has slots for workflow tasks. */
const FAILING = 40;

/** Every transition of such a settlement fails in the database, as on a full disk. */
const POISON = 'poisoned';
const POISON_TRIGGER = `
  CREATE FUNCTION refuse_poisoned() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN RAISE EXCEPTION 'poisoned' USING ERRCODE = 'disk_full'; END $$;
  CREATE TRIGGER poisoned BEFORE UPDATE ON settlements FOR EACH ROW
    WHEN (OLD.reference = '${POISON}') EXECUTE FUNCTION refuse_poisoned()`;

const test = withStack({ worker: false });

test('forty settlements that fail at every retry do not keep another one from settling', async ({
  stack,
  api,
  partner,
}) => {
  await api.owner.pool.query(POISON_TRIGGER);
  const recipientId = await createRecipient(api, partner);
  const settle = async (overrides: Record<string, unknown> = {}): Promise<string> => {
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const answer = await api.call(partner, 'POST', '/v2/settle', settleBody(recipientId, overrides), headers);
    return jsonOf(answer).settlement_id;
  };
  for (let count = 0; count < FAILING; count += 1) await settle({ reference: POISON });
  await stack.startWorker();
  const startedAt = Date.now();
  await untilStatus(api, partner, await settle(), 'settled');
  // With the SDK's default for local retries it took over 40 s (design §4).
  expect(Date.now() - startedAt).toBeLessThan(30_000);
});
