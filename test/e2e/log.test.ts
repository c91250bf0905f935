/** One settlement is followed through the logs of the API, the dispatcher and the worker, to its run in Temporal. */
import { expect, vi } from 'vitest';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { withStack } from '../support/fixture.ts';
import { createRecipient, settleBody, untilStatus } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';

type Line = Readonly<Record<string, unknown>>;
const lines: Line[] = [];
const text: string[] = [];
const test = withStack({
  logTo: {
    write: (line: string) => {
      text.push(line);
      lines.push(JSON.parse(line));
    },
  },
});

test('the settlement id finds its requests, dispatches and steps, and they name its run', async ({
  api,
  stack,
  partner,
}) => {
  const recipientId = await createRecipient(api, partner, { name: 'Marcia Secretive' });
  const requestId = `followed-${crypto.randomUUID()}`;
  const accepted = await fetch(`${stack.baseUrl}/v2/settle`, {
    method: 'POST',
    headers: {
      'x-api-key': partner.apiKey,
      'idempotency-key': crypto.randomUUID(),
      'x-request-id': requestId,
      'content-type': 'application/json',
    },
    body: JSON.stringify(settleBody(recipientId, { reference: 'INV-SECRET' })),
  });
  const { settlement_id: settlementId } = (await accepted.json()) as { settlement_id: string };
  const workflowId = settlementWorkflowId(settlementId);
  const run = stack.temporal.workflow.getHandle(workflowId);
  await untilStatus(api, partner, settlementId, 'settled');
  await run.result();
  await fetch(`${stack.baseUrl}/v2/settle/${settlementId}`, { headers: { 'x-api-key': partner.apiKey } });

  const linesOf = (message: string): Line[] =>
    lines.filter(({ msg, settlement_id }) => msg === message && settlement_id === settlementId);
  await vi.waitFor(() => expect(linesOf('request')).toHaveLength(3), WAIT);
  const ids = { settlement_id: settlementId, workflow_id: workflowId, org_id: partner.orgId };
  const routes = linesOf('request').map(({ route, status }) => [route, status]);
  expect(routes).toContainEqual(['/v2/settle', 202]);
  expect(routes).toContainEqual(['/v2/webhooks/cardproc', 200]);
  expect(routes).toContainEqual(['/v2/settle/:settlement_id', 200]);
  const [post] = linesOf('request');
  expect(post).toMatchObject({ ...ids, process: 'api', key_id: partner.keyId, request_id: requestId });

  const [start] = linesOf('dispatched');
  expect(start).toMatchObject({ ...ids, process: 'dispatcher', kind: 'settlement', request_id: requestId });

  const { runId } = await run.describe();
  const done = linesOf('activity done').filter(({ workflow_id }) => workflow_id === workflowId);
  for (const line of done) expect(line).toMatchObject({ ...ids, process: 'worker', run_id: runId });
  expect(done.map(({ activity, status }) => [activity, status])).toEqual(
    expect.arrayContaining([
      ['admitSettlement', 'awaiting_funds'],
      ['sendPayout', 'settled'],
    ]),
  );
  for (const hidden of ['Secretive', 'INV-SECRET', partner.apiKey, '123456789', 'tok_visa'])
    expect(text.join('')).not.toContain(hidden);
});
