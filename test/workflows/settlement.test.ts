/** A settlement's waits over their whole length, and the operator's review: real PostgreSQL, and a clock that jumps. */
import { setTimeout as delay } from 'node:timers/promises';
import { WorkflowUpdateFailedError } from '@temporalio/client';
import { eq } from 'drizzle-orm';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Activities, createActivities } from '../../activities/index.ts';
import { auditEntries } from '../../db/schema/index.ts';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { runResolve } from '../../ops/resolve.ts';
import { type Dispatcher, startDispatcher } from '../../process/dispatcher.ts';
import { resolveReview } from '../../workflows/contract.ts';
import { activityDeps } from '../support/activity.ts';
import { type Caller, createTestApi, type TestApi } from '../support/api.ts';
import { bankledgerBody, linkAccount, sendBankledger } from '../support/bankledger.ts';
import { createRecipient, type Json, jsonOf, readSettlement, settleBody } from '../support/partner.ts';
import { startTimeSkipping, type TimeSkipping } from '../support/temporal.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const WAIT_MS = 15_000;
const POLL_MS = 20;
const RIGHT = { outcome: 'paid', operator: 'pat', note: 'The bank confirmed it by phone.' } as const;

let api: TestApi;
let caller: Caller;
let activities: Activities;
let time: TimeSkipping;
let dispatcher: Dispatcher | undefined;
/** The workflows' clock, for the API as well. */
let nowMs = Date.now();

beforeAll(async () => {
  const nudge = () => dispatcher?.nudge();
  api = await createTestApi({ deps: { now: () => new Date(nowMs), dispatcher: { nudge } } });
  caller = await api.createCaller();
  const baseUrl = await api.app.listen({ host: '127.0.0.1', port: 0 });
  activities = createActivities({ ...activityDeps(api, baseUrl, { nudge }), now: () => new Date(nowMs) });
  time = await startTimeSkipping(activities);
  dispatcher = startDispatcher({ db: api.connection.db, client: time.client, log: { warn: () => undefined } });
  nowMs = await time.now();
});
afterEach(() => time.restore());
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

const handleOf = (id: string) => time.client.workflow.getHandle(settlementWorkflowId(id));
const read = (id: string): Promise<Json> => readSettlement({ api }, caller, id);

const untilStatus = (id: string, status: string) =>
  until(`settlement that is ${status}`, async () => {
    const settlement = await read(id);
    return settlement.status === status && settlement;
  });

/** So many timers were set: the clock may jump then. */
const untilTimers = (id: string, wanted: number) =>
  until(`timer ${wanted} of ${id}`, async () => {
    const history = await handleOf(id)
      .fetchHistory()
      .catch(() => undefined);
    return (
      (history?.events ?? []).filter(({ timerStartedEventAttributes }) => timerStartedEventAttributes).length >= wanted
    );
  });

const post = async (path: string, body: unknown, status: number): Promise<Json> => {
  const answer = await api.call(caller, 'POST', path, body, { 'idempotency-key': crypto.randomUUID() });
  expect(answer.statusCode, answer.body).toBe(status);
  return jsonOf(answer);
};

/** A settlement that waits for money that comes only when a test says so. */
async function waiting(method: 'card' | 'ach' | 'wire'): Promise<string> {
  const tokens = {
    card: { card_token: 'tok_manual' },
    ach: { card_token: undefined, banklink_account_token: await linkAccount(api, caller) },
    wire: { card_token: undefined },
  };
  const body = settleBody(await createRecipient({ api }, caller), { payment_method: method, ...tokens[method] });
  const { settlement_id: id } = await post('/v2/settle', body, 202);
  await untilTimers(id, 1);
  return id;
}

/** A settlement whose payout nobody answers for, funded internally. */
async function payingOut(): Promise<string> {
  const recipientId = await createRecipient({ api }, caller, { name: 'PAYOUT PENDING' });
  const { payment_method: _method, card_token: _token, ...body } = settleBody(recipientId);
  const { settlement_id: id } = await post('/v1/caribbean/settle', body, 201);
  await untilStatus(id, 'paying_out');
  await untilTimers(id, 1);
  return id;
}

async function inReview(): Promise<string> {
  const id = await payingOut();
  await advance(3 * DAY_MS);
  await untilStatus(id, 'needs_review');
  // The desk opens once the workflow has read what the activity wrote.
  await until('open desk', async () =>
    (await handleOf(id).describe()).typedSearchAttributes.getAll().some(({ value }) => value === 'operator review'),
  );
  return id;
}

const refusalOf = async (update: Promise<unknown>): Promise<string | undefined> =>
  update.then(
    () => undefined,
    (error: unknown) => (error instanceof WorkflowUpdateFailedError ? error.cause?.message : String(error)),
  );

describe('a settlement that waits for its money', () => {
  test.each([
    ['card', 30 * MINUTE_MS],
    ['ach', 5 * DAY_MS],
    ['wire', 10 * DAY_MS],
  ] as const)('by %s expires when its window is over, not a second before', async (method, windowMs) => {
    const id = await waiting(method);
    await advance(windowMs - MINUTE_MS);
    expect((await read(id)).status).toBe('awaiting_funds');
    await advance(MINUTE_MS + 1_000);
    expect((await untilStatus(id, 'expired')).failure.code).toBe('funding_timeout');
    expect(await handleOf(id).result()).toEqual({ status: 'expired', failure: 'funding_timeout' });
  });

  test('and whose bell was lost finds its evidence when the window is over', async () => {
    const id = await waiting('wire');
    await api.connection.pool.query(
      `CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
    );
    await api.connection.pool.query('CREATE TRIGGER lose BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION lose()');
    expect(jsonOf(await sendBankledger(api, bankledgerBody(id)))).toMatchObject({ matched: true });
    await api.connection.pool.query('DROP FUNCTION lose() CASCADE');
    expect((await read(id)).status).toBe('awaiting_funds');
    await advance(10 * DAY_MS + 1_000);
    await untilStatus(id, 'settled');
  });

  test('and whose clock is moved ends at once, though the clock of Temporal stands still', async () => {
    const id = await waiting('wire');
    await post(`/v2/test-helpers/settlements/${id}/advance`, { by: 'P9D' }, 202);
    await untilTimers(id, 2);
    expect((await read(id)).status).toBe('awaiting_funds');
    await post(`/v2/test-helpers/settlements/${id}/advance`, undefined, 202);
    await untilStatus(id, 'expired');
  });

  test('whose clock is moved while it is being reviewed hears of it after the review', async () => {
    const id = await waiting('wire');
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const reviewed = new Promise<void>((resolve) => {
      time.override.reviewFunding = async (step) => {
        const state = await activities.reviewFunding(step);
        resolve();
        await held;
        return state;
      };
    });
    await sendBankledger(api, bankledgerBody(id, { amount_reconciled: 100 }, 'partially_reconciled'));
    await reviewed;
    time.restore();
    await post(`/v2/test-helpers/settlements/${id}/advance`, undefined, 202);
    release();
    expect((await untilStatus(id, 'expired')).amount_received).toBe('1.00');
  });

  test('is funded by parts that come days apart', async () => {
    const id = await waiting('wire');
    await sendBankledger(api, bankledgerBody(id, { amount_reconciled: 10_000 }, 'partially_reconciled'));
    await untilTimers(id, 2);
    await advance(9 * DAY_MS);
    await sendBankledger(api, bankledgerBody(id, { amount_reconciled: 15_000 }));
    expect((await untilStatus(id, 'settled')).amount_received).toBe('250.00');
  });
});

describe('a payout that nobody answers for', () => {
  test('needs review after three days, not before, and waits there for as long as it takes', async () => {
    const id = await payingOut();
    await advance(3 * DAY_MS - MINUTE_MS);
    expect((await read(id)).status).toBe('paying_out');
    await advance(MINUTE_MS + 1_000);
    expect(await untilStatus(id, 'needs_review')).toMatchObject({
      expires_at: null,
      failure: null,
      certificate_id: null,
    });
    await advance(400 * DAY_MS);
    expect((await read(id)).status).toBe('needs_review');
    expect((await handleOf(id).describe()).status.name).toBe('RUNNING');
  });
});

describe('the update resolveReview', () => {
  const update = (id: string, resolution: unknown) =>
    handleOf(id).executeUpdate(resolveReview.name, { args: [resolution] });
  const auditOf = (id: string) => api.connection.db.select().from(auditEntries).where(eq(auditEntries.objectId, id));

  test('is refused before the settlement is in review, and changes nothing', async () => {
    const id = await payingOut();
    expect(await refusalOf(update(id, RIGHT))).toBe('The settlement is not in review.');
    expect((await read(id)).status).toBe('paying_out');
  });

  test('is refused when it is not well-formed, and changes nothing', async () => {
    const id = await inReview();
    for (const wrong of [
      undefined,
      {},
      { ...RIGHT, outcome: 'maybe' },
      { ...RIGHT, operator: '' },
      { ...RIGHT, note: 'a\nb' },
      { ...RIGHT, note: 'x'.repeat(501) },
    ]) {
      expect(await refusalOf(update(id, wrong))).toMatch(/must be/);
    }
    expect([(await read(id)).status, await auditOf(id)]).toEqual(['needs_review', []]);
  });

  test('as paid settles, and the workflow ends', async () => {
    const id = await inReview();
    expect(await update(id, RIGHT)).toEqual({ status: 'settled' });
    expect((await read(id)).certificate_id).toMatch(/^CERT-/);
    expect(await handleOf(id).result()).toEqual({ status: 'settled', failure: null });
  });

  test('as refused fails, and cannot name another settlement', async () => {
    const [id, other] = [await inReview(), await inReview()];
    expect(await update(id, { ...RIGHT, outcome: 'refused', settlementId: other, orgId: 'other', nowMs: 0 })).toEqual({
      status: 'failed',
    });
    expect((await read(other)).status).toBe('needs_review');
    expect(await handleOf(id).result()).toEqual({ status: 'failed', failure: 'payout_refused' });
  });

  test('said by two operators at once is decided once, and both are told what', async () => {
    const id = await inReview();
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    time.override.resolveReview = async (input) => {
      await held;
      return await activities.resolveReview(input);
    };
    const both = (['paid', 'refused'] as const).map((outcome) => update(id, { ...RIGHT, outcome }));
    await until('two accepted updates', async () => {
      const history = await handleOf(id).fetchHistory();
      return (
        (history.events ?? []).filter((event) => event.workflowExecutionUpdateAcceptedEventAttributes).length === 2
      );
    });
    release();
    const [first, second] = await Promise.all(both);
    expect(second).toEqual(first);
    expect(await auditOf(id)).toHaveLength(1);
    await handleOf(id).result();
  });
});

describe('npm run sandbox -- resolve', () => {
  const run = async (id: string, resolution: Parameters<typeof runResolve>[2]) => {
    const lines: string[] = [];
    const code = await runResolve({ client: time.client, print: (line) => lines.push(line) }, id, resolution);
    return [code, lines.join('\n')];
  };

  test('is refused for a settlement that is not there, and for one that is not in review', async () => {
    expect(await run('stl_none', RIGHT)).toEqual([
      1,
      'Not resolved: There is no such settlement, or its history is no longer kept.',
    ]);
    expect(await run(await payingOut(), RIGHT)).toEqual([1, 'Not resolved: The settlement is not in review.']);
  });

  test('resolves; again it tells the same, and the other way round that it is decided', async () => {
    const id = await inReview();
    expect(await run(id, RIGHT)).toEqual([0, `${id} is settled.`]);
    expect(await run(id, RIGHT)).toEqual([0, `${id} is settled.`]);
    expect(await run(id, { ...RIGHT, outcome: 'refused' })).toEqual([1, `Not resolved: ${id} is settled already.`]);
  });

  test('tells of a settlement that ended by itself what became of it', async () => {
    const id = await waiting('card');
    await api.call(caller, 'POST', `/v2/settle/${id}/cancel`);
    await handleOf(id).result();
    expect(await run(id, RIGHT)).toEqual([1, `Not resolved: ${id} is canceled already.`]);
  });
});
