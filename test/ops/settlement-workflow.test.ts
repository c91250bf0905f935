/** `resolve` and `redispatch` of settlements that have, or had, a workflow. */
import type pg from 'pg';
import { expect, vi } from 'vitest';
import { outbox } from '../../db/schema/index.ts';
import { settlementMessage } from '../../domain/outbox.ts';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { createRuns, describeRun } from '../../process/runs.ts';
import { TASK_QUEUE } from '../../workflows/contract.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { digestTables, losingOutboxRows } from '../support/database.ts';
import { FILE, withStack } from '../support/fixture.ts';
import { createOps, createRemoteOps, listAudit } from '../support/ops.ts';
import { readSettlement, settle, untilStatus } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { BY_WIRE, moveToProduction } from '../support/settlement.ts';

/** Whatever a settlement's steps write. */
async function recordOf(pool: pg.Pool): Promise<object> {
  const { settlements, postings, settlement_transitions, events, certificates, ...others } = await digestTables(pool);
  const record = { settlements, postings, settlement_transitions, events, certificates };
  expect(Object.values(record), Object.keys(others).join()).not.toContain(undefined);
  return record;
}

const AUDIT_ARGS = ['--operator', 'Ana', '--note', 'the partner asked by phone', '--yes'];

const test = withStack()
  .extend('ops', FILE, ({ stack }) =>
    createOps(stack.api.connection.db, {
      client: () => stack.temporal,
      runs: createRuns(stack.temporal),
      describeRun: (workflowId) => describeRun(stack.temporal, workflowId),
    }),
  )
  .extend(
    'accept',
    FILE,
    ({ stack, partner }) =>
      (recipient: Record<string, unknown>, overrides: Record<string, unknown> = {}) =>
        settle(stack.api, partner, overrides, recipient),
  )
  /** A settlement whose payout got no answer until its wait was over. */
  .extend('inReview', FILE, ({ stack, partner, accept }) => async (): Promise<string> => {
    const settlementId = await accept({ name: 'PAYOUT PENDING' });
    await untilStatus(stack.api, partner, settlementId, 'paying_out');
    await stack.api.call(partner, 'POST', `/v2/test-helpers/settlements/${settlementId}/advance`, {});
    await untilStatus(stack.api, partner, settlementId, 'needs_review');
    return settlementId;
  });

test('resolve decides a payout in review once; a second decision is refused, and one audit entry says who', async ({
  stack,
  partner,
  ops,
  inReview,
}) => {
  const settlementId = await inReview();
  const resolved = await ops('resolve', settlementId, 'paid', ...AUDIT_ARGS, '--json');
  expect(resolved.exitCode).toBe(0);
  expect(JSON.parse(resolved.printed.join(''))).toEqual({ settlement_id: settlementId, status: 'settled' });
  expect((await untilStatus(stack.api, partner, settlementId, 'settled')).certificate_id).not.toBeNull();
  expect(await ops('resolve', settlementId, 'refused', ...AUDIT_ARGS)).toEqual({
    exitCode: 1,
    printed: [],
    warned: ['Not resolved: The settlement is not in review: it is settled.'],
  });
  expect(await ops('resolve', settlementId, 'paid', ...AUDIT_ARGS)).toMatchObject({ exitCode: 0, warned: [] });
  expect(await listAudit(stack.api.connection.db, settlementId)).toEqual([
    { orgId: partner.orgId, action: 'resolve_review_paid', operator: 'ana', note: AUDIT_ARGS[3] },
  ]);
});

test('two operators agree before a review is resolved outside the local sandbox', async ({
  stack,
  partner,
  inReview,
}) => {
  const { db } = stack.api.connection;
  const ops = await createRemoteOps(db, { runtime: 'production', client: () => stack.temporal }, ['ana', 'bo']);
  const settlementId = await inReview();
  await moveToProduction(stack.api, settlementId);
  const ask = (operator: string, outcome: string) =>
    ops('resolve', settlementId, outcome, '--operator', operator, '--note', `${operator} asked the bank`, '--yes');
  const requested = (outcome: string, ...more: string[]) => ({
    exitCode: 0,
    printed: [`Requested: ${settlementId} was ${outcome}. Another operator confirms it by the same command.`, ...more],
  });
  expect(await ask('ana', 'paid')).toMatchObject(requested('paid'));
  expect(await ask('ana', 'paid')).toMatchObject(requested('paid'));
  expect(await ask('bo', 'refused')).toMatchObject(requested('refused', "It replaces ana's request: paid."));
  expect((await readSettlement(stack.api, partner, settlementId)).status).toBe('needs_review');
  expect(await ask('ana', 'refused')).toMatchObject({ exitCode: 0, printed: [`${settlementId} is failed.`] });
  expect(await untilStatus(stack.api, partner, settlementId, 'failed')).toMatchObject({ amount_refund_due: '250.00' });
  expect((await listAudit(db, settlementId)).map(({ action, operator }) => [action, operator])).toEqual([
    ['review_request', 'ana'],
    ['review_request', 'bo'],
    ['resolve_review_refused', 'ana'],
  ]);
});

test('redispatch signals a workflow that runs, and changes nothing', async ({ stack, partner, ops, accept }) => {
  const settlementId = await accept({}, { card_token: 'tok_manual' });
  const before = await untilStatus(stack.api, partner, settlementId, 'awaiting_funds');
  expect((await ops('redispatch', settlementId, ...AUDIT_ARGS)).exitCode).toBe(0);
  const handle = stack.temporal.workflow.getHandle(settlementWorkflowId(settlementId));
  const countSignals = async () =>
    (await handle.fetchHistory()).events?.filter((event) => event.workflowExecutionSignaledEventAttributes).length;
  await expect.poll(countSignals).toBe(1);
  expect(await readSettlement(stack.api, partner, settlementId)).toEqual(before);
});

test('redispatch starts a terminated workflow again, which reads the evidence that came meanwhile', async ({
  stack,
  partner,
  ops,
  accept,
}) => {
  const settlementId = await accept({}, BY_WIRE);
  await untilStatus(stack.api, partner, settlementId, 'awaiting_funds');
  const handle = stack.temporal.workflow.getHandle(settlementWorkflowId(settlementId));
  await handle.terminate();
  await losingOutboxRows(stack.api.owner.pool, () => sendBankledger(stack.api, bankledgerBody(settlementId)));
  expect((await handle.describe()).status.name).toBe('TERMINATED');
  await stack.api.connection.pool.query('UPDATE settlements SET clock_offset_ms = 16000');
  const stuck = async () => (await ops('stuck')).printed.filter((line) => /settlement .*no run/.test(line));
  expect(await stuck()).toEqual([expect.stringContaining(settlementId)]);
  expect((await ops('redispatch', settlementId, ...AUDIT_ARGS)).exitCode).toBe(0);
  await untilStatus(stack.api, partner, settlementId, 'settled');
  expect(await handle.result()).toEqual({ status: 'settled', failure: null });
  expect(await stuck()).toEqual([]);
});

test('a row that is dispatched a second time after its settlement has settled starts a run that changes nothing', async ({
  stack,
  partner,
  accept,
}) => {
  const { db } = stack.api.connection;
  const settlementId = await accept({});
  const before = await untilStatus(stack.api, partner, settlementId, 'settled');
  const handle = stack.temporal.workflow.getHandle(settlementWorkflowId(settlementId));
  await handle.result();
  const first = await handle.describe();
  const writtenBefore = await recordOf(stack.api.owner.pool);
  // As after a dispatcher that died between its call and its delete.
  const context = { orgId: partner.orgId, corridor: 'US-JM', paymentMethod: 'card' } as const;
  await db.insert(outbox).values(settlementMessage({ settlementId, ...context }, null, 'repeated'));
  await expect.poll(async () => (await handle.describe()).runId, WAIT).not.toBe(first.runId);
  expect(await handle.result()).toEqual({ status: 'settled', failure: null });
  expect(await readSettlement(stack.api, partner, settlementId)).toEqual(before);
  expect(await recordOf(stack.api.owner.pool)).toEqual(writtenBefore);
});

test('show distinguishes a running from a completed run', async ({ stack, partner, ops, accept }) => {
  const runOf = async (id: string) => JSON.parse((await ops('show', id, '--json')).printed.join('')).run;
  const waiting = await accept({}, { card_token: 'tok_manual' });
  const settled = await accept({});
  await untilStatus(stack.api, partner, waiting, 'awaiting_funds');
  await untilStatus(stack.api, partner, settled, 'settled');
  await stack.temporal.workflow.getHandle(settlementWorkflowId(settled)).result();
  expect(await runOf(waiting)).toMatch(/^running, started \d{4}-/);
  expect(await runOf(settled)).toMatch(/^completed, started \d{4}-/);
});

test('show and stuck say that a workflow task fails, how often, why, and that a redispatch does not help', async ({
  stack,
  ops,
  accept,
}) => {
  let settlementId = '';
  await losingOutboxRows(stack.api.owner.pool, async () => {
    settlementId = await accept({});
  });
  // As of a later version, whose workflows this worker does not have.
  await stack.temporal.workflow.start('laterWorkflow', {
    workflowId: settlementWorkflowId(settlementId),
    taskQueue: TASK_QUEUE,
    // Of a first attempt that times out, Temporal records no failure.
    workflowTaskTimeout: '2 minutes',
  });
  const failing = /^Its workflow task fails and is repeated, attempt \d+: Failed to initialize workflow.*Redispatch/;
  const report = await vi.waitUntil(async () => {
    const shown = JSON.parse((await ops('show', settlementId, '--json')).printed.join(''));
    return failing.test(shown.next[0].say) && shown;
  }, WAIT);
  expect(report.next).toMatchObject([{ section: 'Changing workflows' }]);
  expect(report.pending_steps).toEqual([
    {
      step: 'workflow task',
      attempt: expect.any(Number),
      last_failure: expect.stringMatching(/^Failed to initialize workflow/),
    },
  ]);
  const later = createOps(stack.api.connection.db, {
    runs: createRuns(stack.temporal),
    describeRun: (workflowId) => describeRun(stack.temporal, workflowId),
    now: () => new Date(Date.now() + 3_600_000),
  });
  const { printed } = await later('stuck');
  const line = printed.find((text) => text.includes(settlementId));
  expect(line).toMatch(/Its workflow task fails.*Redispatch.*docs\/operations\.md, "Changing workflows"/);
  const { settlements } = JSON.parse((await later('stuck', '--json')).printed.join(''));
  const listed = settlements.find(({ settlement_id: id }: { settlement_id: string }) => id === settlementId);
  expect(listed.failing_task).toEqual({
    attempt: expect.any(Number),
    cause: expect.stringMatching(/^Failed to initialize workflow/),
  });
});
