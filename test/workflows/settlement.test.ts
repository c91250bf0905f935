/** A settlement's waits over their whole length, and the operator's review: real PostgreSQL, and a clock that jumps. */
import { WorkflowUpdateFailedError } from '@temporalio/client';
import { eq } from 'drizzle-orm';
import { describe, expect, vi } from 'vitest';
import { requestResolution } from '../../db/commands/review.ts';
import { auditEntries, reviewRequests } from '../../db/schema/index.ts';
import type { Resolution } from '../../domain/review.ts';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { redispatched, resolveReview } from '../../workflows/contract.ts';
import { bankledgerBody, linkAccount, sendBankledger } from '../support/bankledger.ts';
import { losingOutboxRows } from '../support/database.ts';
import { FILE } from '../support/fixture.ts';
import { createOps } from '../support/ops.ts';
import { type Json, jsonOf, settle, untilStatus } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { BY_MANUAL_CARD } from '../support/settlement.ts';
import { createBarrier, detailsOf, RUNBOOK_URL, untilTimers, withJumpingClock } from './fixture.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const PAID = { outcome: 'paid', operator: 'pat', note: 'The bank confirmed it by phone.' } as const;

const test = withJumpingClock().extend('world', FILE, ({ api, partner, steps, time }) => {
  const handle = (id: string) => time.client.workflow.getHandle(settlementWorkflowId(id));
  const post = async (path: string, body: unknown, status: number): Promise<Json> => {
    const answer = await api.call(partner, 'POST', path, body, { 'idempotency-key': crypto.randomUUID() });
    expect(answer.statusCode, answer.body).toBe(status);
    return jsonOf(answer);
  };
  /** A settlement whose payout has no answer. It is funded internally. */
  const payingOut = async (): Promise<string> => {
    const id = await steps.acceptInternal({ name: 'PAYOUT PENDING' });
    await untilStatus(api, partner, id, 'paying_out');
    await untilTimers(time, settlementWorkflowId(id));
    return id;
  };
  return {
    handle,
    post,
    payingOut,
    read: steps.read,
    untilStatus: (id: string, status: string) => untilStatus(api, partner, id, status),
    untilTimers: (id: string, count: number) => untilTimers(time, settlementWorkflowId(id), count),
    /** A settlement that waits for money, which comes only when the test sends it. */
    awaitingFunds: async (method: 'card' | 'ach' | 'wire'): Promise<string> => {
      const tokens = {
        card: { card_token: 'tok_manual' },
        ach: { card_token: undefined, banklink_account_token: await linkAccount(api, partner) },
        wire: { card_token: undefined },
      };
      const id = await settle(api, partner, { payment_method: method, ...tokens[method] });
      await untilTimers(time, settlementWorkflowId(id));
      return id;
    },
    inReview: async (): Promise<string> => {
      const id = await payingOut();
      await time.advance(3 * DAY_MS);
      await untilStatus(api, partner, id, 'needs_review');
      // The workflow accepts the update only once it has read what the activity wrote.
      await vi.waitUntil(async () => {
        const { typedSearchAttributes } = await handle(id).describe();
        return typedSearchAttributes.getAll().some(({ value }) => value === 'operator review');
      }, WAIT);
      return id;
    },
    update: (id: string, sent?: unknown) =>
      handle(id).executeUpdate<unknown, [unknown]>(resolveReview.name, { args: [sent] }),
    /** The command's exit code and what it prints. */
    resolve: async (
      id: string,
      { outcome, operator, note }: typeof PAID | (Omit<typeof PAID, 'outcome'> & Resolution),
    ) => {
      const ops = createOps(api.connection.db, { now: api.deps.now, client: () => time.client });
      const act = ['--operator', operator, '--note', note, '--yes'];
      const { exitCode, printed, warned } = await ops('resolve', id, outcome, ...act);
      return [exitCode, [...printed, ...warned].join('\n')];
    },
    auditOf: (id: string) => api.connection.db.select().from(auditEntries).where(eq(auditEntries.objectId, id)),
  };
});
// Starts the servers in a hook: its timeout is longer than a test's.
test.beforeAll(({ world: _ }) => undefined);
test.afterEach(({ time }) => time.restore());

const rootMessage = (error: Error): string => (error.cause instanceof Error ? rootMessage(error.cause) : error.message);

const refusalOf = async (update: Promise<unknown>): Promise<string | undefined> =>
  update.then(
    () => undefined,
    (error: unknown) => (error instanceof WorkflowUpdateFailedError ? rootMessage(error) : String(error)),
  );

describe('Current Details of Temporal UI', () => {
  const SECTION = `[Runbook: Why does a settlement wait?](${RUNBOOK_URL}#why-does-a-settlement-wait)`;

  test('say until when a settlement waits and what ops show says to do next, with a link to the runbook', async ({
    api,
    world,
  }) => {
    const id = await world.awaitingFunds('card');
    const { expires_at: until } = await world.read(id);
    const details = await detailsOf(world.handle(id));
    expect(details.split('\n\n')).toEqual([
      '**awaiting_funds**',
      `Waits for **card evidence** until ${until}`,
      `**Next**: None: the provider confirms the money before ${until}, or it expires. To end it now:`,
      `\`npm run ops -- cancel ${id} --operator <name> --note <why>\``,
      SECTION,
    ]);
    const describeRun = async () => ({ runId: 'run-1', status: 'running', startedAt: new Date(), activities: [] });
    const ops = createOps(api.connection.db, { now: api.deps.now, describeRun });
    const [next] = JSON.parse((await ops('show', id, '--json')).printed.join('')).next;
    expect([details.includes(`**Next**: ${next.say}`), details.includes(`\`${next.command}\``)]).toEqual([true, true]);
  });

  test('name the command that decides a review, and why an ended settlement ended', async ({ world, time }) => {
    const id = await world.inReview();
    const [status, waits, ask, command, link] = (await detailsOf(world.handle(id))).split('\n\n');
    expect([status, waits]).toEqual(['**needs_review**', 'Waits for **operator review**']);
    expect(ask).toBe(`**Next**: Ask the payout rail whether ${id} was paid. Then:`);
    expect(command).toMatch(`npm run ops -- resolve ${id} paid|refused --operator <name>`);
    expect(link).toBe(SECTION);
    const expired = await world.awaitingFunds('card');
    await time.advance(31 * MINUTE_MS);
    await world.untilStatus(expired, 'expired');
    await world.handle(expired).result();
    expect(await detailsOf(world.handle(expired))).toBe(
      '**expired**: funding_timeout\n\n**Next**: None: it has ended.',
    );
  });
});

describe('a settlement that waits for its money', () => {
  test.for([
    ['card', 30 * MINUTE_MS],
    ['ach', 5 * DAY_MS],
    ['wire', 10 * DAY_MS],
  ] as const)(
    'expires, by %s, when its window is over, not a minute before',
    async ([method, windowMs], { world, time }) => {
      const id = await world.awaitingFunds(method);
      await time.advance(windowMs - MINUTE_MS);
      expect((await world.read(id)).status).toBe('awaiting_funds');
      await time.advance(MINUTE_MS + 1_000);
      expect((await world.untilStatus(id, 'expired')).failure.code).toBe('funding_timeout');
      expect(await world.handle(id).result()).toEqual({ status: 'expired', failure: 'funding_timeout' });
    },
  );

  test('finds its evidence when the window is over if the signal was lost', async ({ world, api, time }) => {
    const id = await world.awaitingFunds('wire');
    await losingOutboxRows(api.owner.pool, async () => {
      expect(jsonOf(await sendBankledger(api, bankledgerBody(id)))).toMatchObject({ matched: true });
    });
    expect((await world.read(id)).status).toBe('awaiting_funds');
    await time.advance(10 * DAY_MS + 1_000);
    await world.untilStatus(id, 'settled');
  });

  test("expires at once when its own clock is moved past the window, while Temporal's clock stands still", async ({
    world,
  }) => {
    const id = await world.awaitingFunds('wire');
    await world.post(`/v2/test-helpers/settlements/${id}/advance`, { by: 'P9D' }, 202);
    await world.untilTimers(id, 2);
    expect((await world.read(id)).status).toBe('awaiting_funds');
    await world.post(`/v2/test-helpers/settlements/${id}/advance`, undefined, 202);
    await world.untilStatus(id, 'expired');
  });

  test('has its whole window once it is admitted, however long the database could not be reached before', async ({
    world,
    api,
    partner,
    time,
  }) => {
    let failures = 0;
    time.override.admitSettlement = async () => {
      failures += 1;
      throw new Error('The database has failed.');
    };
    const id = await settle(api, partner, BY_MANUAL_CARD);
    await vi.waitUntil(() => failures > 0, WAIT);
    await time.advance(45 * MINUTE_MS);
    const restoredMs = await time.now();
    time.restore();
    await time.advance(MINUTE_MS);
    const { expires_at: until } = await world.untilStatus(id, 'awaiting_funds');
    expect(Date.parse(until) - restoredMs).toBeGreaterThanOrEqual(30 * MINUTE_MS);
  });

  test('is tried often while the database fails, and after an hour every five minutes: its history grows slowly', async ({
    world,
    api,
    partner,
    time,
  }) => {
    let tries = 0;
    time.override.admitSettlement = async () => {
      tries += 1;
      throw new Error('The database has failed.');
    };
    const id = await settle(api, partner, BY_MANUAL_CARD);
    await vi.waitUntil(
      async () => {
        await time.advance(MINUTE_MS / 2);
        return tries >= 120;
      },
      { ...WAIT, interval: 1 },
    );
    const endMs = await world.untilTimers(id, 120);
    expect(endMs - (await time.now())).toBeGreaterThan(4 * MINUTE_MS);
  });

  test('waits until its window is over, however long the result of a step waited for a worker', async ({
    world,
    api,
    time,
    activities,
  }) => {
    const id = await world.awaitingFunds('wire');
    time.override.sendPayout = async (input) => {
      const state = await activities.sendPayout(input);
      await time.advance(10_000);
      return state;
    };
    await sendBankledger(api, bankledgerBody(id, { amount_reconciled: 100 }, 'partially_reconciled'));
    const endMs = await world.untilTimers(id, 2);
    const { expires_at: until } = await world.read(id);
    expect(Math.abs(endMs - Date.parse(until))).toBeLessThan(9_000);
  });

  test('is reviewed once more when its clock is moved during a review', async ({ world, api, time, activities }) => {
    const id = await world.awaitingFunds('wire');
    const release = createBarrier();
    const reviewed = createBarrier();
    time.override.sendPayout = async (input) => {
      const state = await activities.sendPayout(input);
      reviewed.open();
      await release.opened;
      return state;
    };
    await sendBankledger(api, bankledgerBody(id, { amount_reconciled: 100 }, 'partially_reconciled'));
    await reviewed.opened;
    time.restore();
    await world.post(`/v2/test-helpers/settlements/${id}/advance`, undefined, 202);
    release.open();
    expect((await world.untilStatus(id, 'expired')).amount_received).toBe('1.00');
  });
});

describe('a payout without an answer', () => {
  test('needs review after three days, not a minute before, and stays in review for as long as it takes', async ({
    world,
    time,
  }) => {
    const id = await world.payingOut();
    await time.advance(3 * DAY_MS - MINUTE_MS);
    expect((await world.read(id)).status).toBe('paying_out');
    await time.advance(MINUTE_MS + 1_000);
    expect(await world.untilStatus(id, 'needs_review')).toMatchObject({
      expires_at: null,
      failure: null,
      certificate_id: null,
    });
    await time.advance(400 * DAY_MS);
    expect((await world.read(id)).status).toBe('needs_review');
    expect((await world.handle(id).describe()).status.name).toBe('RUNNING');
  });
});

describe('the update resolveReview', () => {
  test('is refused before the settlement is in review, and changes nothing', async ({ world }) => {
    const id = await world.payingOut();
    expect(await refusalOf(world.update(id))).toBe('The settlement is not in review.');
    expect((await world.read(id)).status).toBe('paying_out');
  });

  test('decides nothing that operators have not agreed on, whatever it carries, nor does a signal, which is one review', async ({
    world,
    time,
    activities,
  }) => {
    const id = await world.inReview();
    let reviews = 0;
    time.override.reviewSettlement = async (input) => {
      // The runs of earlier tests are reviewed too.
      if (input.settlementId === id) reviews += 1;
      return await activities.reviewSettlement(input);
    };
    await world.handle(id).signal(redispatched);
    await vi.waitUntil(() => reviews > 0, WAIT);
    for (const sent of [undefined, {}, PAID, { ...PAID, orgId: 'other', nowMs: 0 }])
      expect(await refusalOf(world.update(id, sent))).toBe('No outcome is agreed. See `ops resolve`.');
    expect([(await world.read(id)).status, await world.auditOf(id), reviews]).toEqual(['needs_review', [], 1]);
  });

  test('sent twice at once, decides once, and both get the same answer', async ({ api, world, time, activities }) => {
    const id = await world.inReview();
    // Without the signal, which would let the run end before the updates come.
    await losingOutboxRows(api.owner.pool, () => requestResolution(api.deps, id, PAID));
    const release = createBarrier();
    time.override.resolveReview = async (input) => {
      await release.opened;
      return await activities.resolveReview(input);
    };
    const both = [world.update(id), world.update(id)];
    await vi.waitUntil(async () => {
      const { events = [] } = await world.handle(id).fetchHistory();
      return events?.filter((event) => event.workflowExecutionUpdateAcceptedEventAttributes).length === 2;
    }, WAIT);
    release.open();
    expect(await Promise.all(both)).toEqual([{ status: 'settled' }, { status: 'settled' }]);
    expect((await world.read(id)).certificate_id).toMatch(/^CERT-/);
    expect(await world.auditOf(id)).toHaveLength(1);
    expect(await world.handle(id).result()).toEqual({ status: 'settled', failure: null });
  });
});

describe('npm run ops -- resolve', () => {
  test("says that the rail's own evidence decided, when it came first", async ({ api, world }) => {
    const id = await world.inReview();
    await world.post(`/v2/test-helpers/settlements/${id}/events`, { event: 'payout_confirmed' }, 202);
    await world.untilStatus(id, 'settled');
    expect(await world.resolve(id, { ...PAID, outcome: 'refused' })).toEqual([
      1,
      'Not resolved: The settlement is not in review: it is settled.',
    ]);
    expect(await api.connection.db.select().from(reviewRequests).where(eq(reviewRequests.settlementId, id))).toEqual(
      [],
    );
  });
});
