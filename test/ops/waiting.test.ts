/** What operators see of a service that stands still, from its database alone. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { runOps } from '../../ops/main.ts';
import { type Caller, createTestApi, TEST_KEYS, type TestApi } from '../support/api.ts';
import { digestTables } from '../support/database.ts';
import { openSettlement } from '../support/settlement.ts';

const HOUR_MS = 3_600_000;

let api: TestApi;
let caller: Caller;
let now: Date;
let printed: string[];

beforeAll(async () => {
  api = await createTestApi();
});
beforeEach(async () => {
  await api.connection.pool.query('DELETE FROM outbox');
  caller = await api.createCaller();
  now = new Date();
  printed = [];
});
afterAll(() => api.close());

const noTemporal = () => {
  throw new Error('this must work while Temporal is down');
};
const ops = (...args: string[]) =>
  runOps(
    {
      runtime: 'local-sandbox',
      db: api.connection.db,
      keys: TEST_KEYS,
      client: noTemporal,
      now: () => now,
      print: (line) => printed.push(line),
    },
    args,
  );
const linesOf = (id: string): string[] => printed.filter((line) => line.includes(id)).map((line) => line.trim());
const ago = (ms: number): Date => new Date(now.getTime() - ms);

test.each([[['waiting', 'more']], [['stuck', '--operator', 'ana']]])('%j is refused with 1', async (args) => {
  expect(await ops(...args)).toBe(1);
  expect(printed.join('\n')).toContain('npm run ops -- waiting');
});

test('waiting says what each settlement waits for, since when, until when and for whom, and leaves out what has ended', async () => {
  const since = ago(HOUR_MS);
  const held = await openSettlement(api, caller, ['compliance_hold'], since);
  const unpaid = await openSettlement(api, caller, ['awaiting_funds'], since);
  const inReview = await openSettlement(api, caller, ['awaiting_funds', 'funded', 'paying_out', 'needs_review'], since);
  const ended = await openSettlement(api, caller, ['canceled'], since);
  const before = await digestTables(api.connection.pool);
  expect(await ops('waiting')).toBe(0);
  const tail = `organization ${caller.orgId}`;
  const until = new Date(since.getTime() + HOUR_MS / 2).toISOString();
  expect(linesOf(unpaid)).toEqual([
    `${unpaid} awaiting_funds: waits for card evidence; since ${since.toISOString()}, until ${until}; ${tail}`,
  ]);
  expect(linesOf(held)[0]).toContain('compliance_hold: waits for the verification of recipient ');
  expect(linesOf(inReview)).toEqual([
    `${inReview} needs_review: waits for an operator: resolve it as paid or refused; since ${since.toISOString()}; ${tail}`,
  ]);
  expect(linesOf(ended)).toEqual([]);
  expect(await digestTables(api.connection.pool)).toEqual(before);
});

test('waiting names open verifications by their recipients, never by a person', async () => {
  const recipient = await api.call(caller, 'POST', '/v1/recipients', {
    kind: 'contractor',
    entity_type: 'individual',
    name: 'Secretive Person',
    country: 'JM',
    bank_details: { bank_name: 'National Commercial Bank', account_number: '123456789', currency: 'JMD' },
  });
  const { recipient_id: recipientId } = recipient.json();
  await api.connection.pool.query(
    `INSERT INTO verifications (verification_id, org_id, recipient_id, verification_type, status, provider, subject_name, request_id, created_at, expires_at)
     VALUES ('verification-1', $1, $2, 'identity', 'pending', 'idverify', 'Secretive Person', 'test', $3, $4)`,
    [caller.orgId, recipientId, ago(HOUR_MS), now],
  );
  await ops('waiting');
  expect(linesOf('verification-1')[0]).toContain(`waits for the decision about recipient ${recipientId}`);
  expect(printed.join('\n')).not.toContain('Secretive');
});

test('stuck names a wait that was not ended and a settlement that nobody works on, and none that merely waits', async () => {
  const over = await openSettlement(api, caller, ['awaiting_funds'], ago(HOUR_MS));
  const unattended = await openSettlement(api, caller, ['awaiting_funds', 'funded'], ago(HOUR_MS));
  const inTime = await openSettlement(api, caller, ['awaiting_funds'], ago(HOUR_MS / 4));
  const justAccepted = await openSettlement(api, caller);
  expect(await ops('stuck')).toBe(0);
  expect([over, unattended, inTime, justAccepted].map((id) => linesOf(id).length)).toEqual([1, 1, 0, 0]);
});

test("stuck goes by a settlement's own clock", async () => {
  const advanced = await openSettlement(api, caller, ['awaiting_funds'], ago(0));
  await api.connection.pool.query('UPDATE settlements SET clock_offset_ms = $2 WHERE settlement_id = $1', [
    advanced,
    HOUR_MS,
  ]);
  await ops('stuck');
  expect(linesOf(advanced)).toHaveLength(1);
});

test('stuck names what has not reached Temporal for a minute, with the kind of the last error', async () => {
  const settlementId = await openSettlement(api, caller);
  await api.connection.pool.query(
    `UPDATE outbox SET created_at = now() - interval '61 seconds', attempts = 4, last_error = 'ServiceError' WHERE object_id = $1`,
    [settlementId],
  );
  await ops('stuck');
  expect(linesOf(settlementId)).toEqual([
    expect.stringMatching(/^settlement stl_\w+: since .*, 4 attempts, last ServiceError$/),
  ]);
});
