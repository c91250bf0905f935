/** A verification and the settlements that wait for it, over their whole lives: real PostgreSQL, and a clock that jumps. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createActivities } from '../../activities/index.ts';
import { settlementWorkflowId, verificationWorkflowId } from '../../domain/workflow-id.ts';
import { type Dispatcher, startDispatcher } from '../../process/dispatcher.ts';
import { activityDeps } from '../support/activity.ts';
import { type Caller, createTestApi, type TestApi } from '../support/api.ts';
import { createRecipient, jsonOf, readSettlement, settleBody, untilStatus } from '../support/partner.ts';
import { startTimeSkipping, type TimeSkipping } from '../support/temporal.ts';
import { complete, openVerification, statusOf } from '../support/verification.ts';

const DAY_MS = 24 * 60 * 60_000;
const WAIT_MS = 15_000;
const POLL_MS = 20;

let api: TestApi;
let caller: Caller;
let time: TimeSkipping;
let dispatcher: Dispatcher | undefined;
/** The workflows' clock, for the API as well. */
let nowMs = Date.now();

beforeAll(async () => {
  const nudge = () => dispatcher?.nudge();
  api = await createTestApi({ deps: { now: () => new Date(nowMs), dispatcher: { nudge } } });
  caller = await api.createCaller();
  const baseUrl = await api.app.listen({ host: '127.0.0.1', port: 0 });
  time = await startTimeSkipping(
    createActivities({ ...activityDeps(api, baseUrl, { nudge }), now: () => new Date(nowMs) }),
  );
  dispatcher = startDispatcher({ db: api.connection.db, client: time.client, log: { warn: () => undefined } });
  nowMs = await time.now();
});
afterAll(async () => {
  await dispatcher?.stop();
  await time.teardown();
  await api.close();
});

const advance = async (ms: number): Promise<void> => {
  await time.advance(ms);
  nowMs = await time.now();
};

async function until<T>(what: string, read: () => Promise<T | undefined | false>): Promise<T> {
  const end = Date.now() + WAIT_MS;
  for (;;) {
    const found = await read();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > end) throw new Error(`there was no ${what}`);
    await delay(POLL_MS);
  }
}

/** A workflow waits once it has set its timer; the clock may jump then. */
const untilWaiting = (workflowId: string) =>
  until(`timer in ${workflowId}`, async () => {
    const history = await time.client.workflow
      .getHandle(workflowId)
      .fetchHistory()
      .catch(() => undefined);
    return history?.events?.some(({ timerStartedEventAttributes }) => timerStartedEventAttributes);
  });

const untilVerification = (recipientId: string, status: string) =>
  until(`verification that is ${status}`, async () => {
    const found = await statusOf(api, caller, recipientId);
    return found.latest?.status === status && found;
  });

const settle = async (recipientId: string, amount: string): Promise<string> => {
  const answer = await api.call(caller, 'POST', '/v2/settle', settleBody(recipientId, { amount }), {
    'idempotency-key': crypto.randomUUID(),
  });
  expect(answer.statusCode, answer.body).toBe(202);
  return jsonOf(answer).settlement_id;
};

const untilMoved = (settlementId: string, from: string) =>
  until(`settlement that left ${from}`, async () => {
    const settlement = await readSettlement({ api }, caller, settlementId);
    return settlement.status !== from && settlement;
  });

const statusesOf = ({ timeline }: { timeline: { status: string }[] }) => timeline.map(({ status }) => status);

describe('a verification', () => {
  test('expires after thirty days, not before, and its workflow ends', async () => {
    const recipientId = await createRecipient({ api }, caller);
    const { verification_id: id } = await openVerification(api, caller, recipientId);
    await untilWaiting(verificationWorkflowId(id));
    await advance(30 * DAY_MS - 60_000);
    expect((await statusOf(api, caller, recipientId)).verification_status).toBe('pending');
    await advance(61_000);
    expect((await untilVerification(recipientId, 'expired')).verification_status).toBe('expired');
    expect(await time.client.workflow.getHandle(verificationWorkflowId(id)).result()).toEqual({ status: 'expired' });
  });

  test('that is decided ends its workflow at once', async () => {
    const { verification_id: id } = await openVerification(api, caller, await createRecipient({ api }, caller));
    await untilWaiting(verificationWorkflowId(id));
    await complete(api, caller, id, { status: 'verified' });
    expect(await time.client.workflow.getHandle(verificationWorkflowId(id)).result()).toEqual({ status: 'verified' });
  });

  test('whose bell was lost is found decided when its time is over', async () => {
    const recipientId = await createRecipient({ api }, caller);
    const { verification_id: id } = await openVerification(api, caller, recipientId);
    await untilWaiting(verificationWorkflowId(id));
    await api.connection.pool.query(
      `CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
    );
    await api.connection.pool.query('CREATE TRIGGER lose BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION lose()');
    await complete(api, caller, id, { status: 'rejected', rejection_reason: 'blurred' });
    await api.connection.pool.query('DROP FUNCTION lose() CASCADE');
    await advance(30 * DAY_MS + 1_000);
    expect(await time.client.workflow.getHandle(verificationWorkflowId(id)).result()).toEqual({ status: 'rejected' });
    expect((await statusOf(api, caller, recipientId)).verification_status).toBe('rejected');
  });
});

describe('a settlement of 1 000.00', () => {
  test('below it nobody needs to be verified', async () => {
    const id = await settle(await createRecipient({ api }, caller), '999.99');
    const moved = await untilMoved(id, 'accepted');
    expect(statusesOf(moved)).not.toContain('compliance_hold');
  });

  test('is held for seven days and expires; the verification stays open', async () => {
    const recipientId = await createRecipient({ api }, caller);
    const { verification_id: verificationId } = await openVerification(api, caller, recipientId);
    await untilWaiting(verificationWorkflowId(verificationId));
    const id = await settle(recipientId, '1000.00');
    await untilStatus({ api }, caller, id, 'compliance_hold');
    await untilWaiting(settlementWorkflowId(id));
    await advance(7 * DAY_MS - 60_000);
    expect((await readSettlement({ api }, caller, id)).status).toBe('compliance_hold');
    await advance(61_000);
    const expired = await untilStatus({ api }, caller, id, 'expired');
    expect(expired.failure).toMatchObject({ code: 'verification_timeout' });
    expect((await statusOf(api, caller, recipientId)).verification_status).toBe('pending');
  });

  test('is rejected with its verification', async () => {
    const recipientId = await createRecipient({ api }, caller);
    const { verification_id: verificationId } = await openVerification(api, caller, recipientId);
    const id = await settle(recipientId, '1000.00');
    await untilStatus({ api }, caller, id, 'compliance_hold');
    await complete(api, caller, verificationId, { status: 'rejected', rejection_reason: 'blurred' });
    const rejected = await untilStatus({ api }, caller, id, 'rejected');
    expect(rejected.failure).toMatchObject({ code: 'verification_rejected' });
    expect(statusesOf(rejected)).toEqual(['accepted', 'compliance_hold', 'rejected']);
  });

  test('goes on when its verification expires: the hold is its own', async () => {
    const recipientId = await createRecipient({ api }, caller);
    const { verification_id: verificationId } = await openVerification(api, caller, recipientId);
    await untilWaiting(verificationWorkflowId(verificationId));
    await advance(26 * DAY_MS);
    const id = await settle(recipientId, '1000.00');
    await untilStatus({ api }, caller, id, 'compliance_hold');
    await untilWaiting(settlementWorkflowId(id));
    await advance(4 * DAY_MS + 60_000);
    await untilVerification(recipientId, 'expired');
    const { verification_id: second } = await openVerification(api, caller, recipientId);
    await complete(api, caller, second, { status: 'verified' });
    const after = await untilMoved(id, 'compliance_hold');
    expect(statusesOf(after).slice(0, 3)).toEqual(['accepted', 'compliance_hold', 'awaiting_funds']);
  });
});
