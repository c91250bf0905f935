/** What operators do: each command, with each of its filters. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Client } from '@temporalio/client';
import { EXIT } from '../../ops/command-line/program.ts';
import type { TestApi } from '../support/api.ts';
import { cardprocBody, sendCardproc } from '../support/cardproc.ts';
import { createConsumerRecipient, signIn } from '../support/consumer.ts';
import { createOps, recordKeys } from '../support/ops.ts';
import { createRecipient } from '../support/partner.ts';
import { BY_MANUAL_CARD, createSteps } from '../support/settlement.ts';
import { ping, subscribe } from '../support/webhook.ts';
import type { Large } from './partner-flow.ts';

const ACT = ['--operator', 'ana', '--note', 'asked', '--yes'];
const BO = ['--operator', 'bo', '--note', 'asked', '--yes'];

export async function playOperators(api: TestApi, { partner, webhookId, recipientId }: Large): Promise<void> {
  const steps = createSteps(api, partner);
  const resolve = async (workflowId: string) =>
    await steps.activities.resolveReview(steps.step(workflowId.replace('settlement:', '')));
  // Temporal's part of a decision, which the run would carry out.
  const workflow = { getHandle: (workflowId: string) => ({ executeUpdate: () => resolve(workflowId) }) };
  const client = { workflow, withDeadline: <T>(_at: number, call: () => T): T => call() } as unknown as Client;
  const ops = createOps(api.connection.db, { client: () => client });
  const runAs = async (exitCodes: readonly number[], args: readonly string[]): Promise<string> => {
    const { exitCode, printed, warned } = await ops(...args);
    if (!exitCodes.includes(exitCode)) throw new Error(`${args.join(' ')}: ${exitCode} ${warned.join(' ')}`);
    return printed.join('\n');
  };
  const run = (...args: string[]) => runAs([EXIT.done], args);
  /**
   * A comparison that finds a difference, or a text that no key opens: filled rows are not as the service writes them.
   */
  const runOnFilled = (...args: string[]) => runAs([EXIT.refused], args);
  const settlementId = await steps.waiting();
  const { orgId } = partner;
  const subscription = await subscribe(api, partner, 'http://127.0.0.1:9999/hook');
  const { delivery_id: deliveryId } = await ping(api, partner, subscription.webhook_id);
  const { rows } = await api.owner.pool.query(
    `SELECT (SELECT cert_id FROM certificates WHERE org_id = $1 AND cert_id LIKE 'CERT%' LIMIT 1) AS cert,
       (SELECT verification_id FROM verifications WHERE org_id = $1 AND verification_id NOT LIKE 'ver%' LIMIT 1) AS ver,
       (SELECT event_id FROM provider_events LIMIT 1) AS event, (SELECT request_id FROM settlements LIMIT 1) AS request`,
    [orgId],
  );
  const { cert, ver, event, request } = rows[0];
  const shown = [settlementId, orgId, recipientId, webhookId, deliveryId, cert, ver, event, request, 'invoice 1'];
  for (const id of shown) await run('show', id);
  await run('waiting');
  await run('partitions');
  await run('stuck');
  await run('reconcile');
  const directory = mkdtempSync(path.join(os.tmpdir(), 'ops-'));
  const rail = path.join(directory, 'rail.csv');
  writeFileSync(rail, `settlement_id,outcome\n${settlementId},paid\n`);
  await runOnFilled('reconcile', '--rail', rail);
  const filters: Record<string, readonly (readonly string[])[]> = {
    settlements: [
      ...[[], ['--status', 'settled'], ['--status', 'awaiting_funds', '--org', orgId], ['--corridor', 'CA-JM']],
      ...[
        ['--recipient', recipientId],
        ['--reference', 'invoice 1'],
        ['--refund-due'],
        ['--older-than', '1h'],
        ['--org', orgId],
      ],
    ],
    deliveries: [
      [],
      ['--status', 'succeeded'],
      ['--status', 'skipped'],
      ['--webhook', webhookId],
      ['--org', orgId],
      ['--older-than', '1h'],
    ],
    subscriptions: [[], ['--status', 'failing'], ['--org', orgId], ['--status', 'deleted']],
    evidence: [[], ['--pending'], ['--kind', 'collection_succeeded'], ['--org', orgId]],
    audit: [[], ['--operator', 'ana'], ['--action', 'settlement_cancel'], ['--object', settlementId], ['--org', orgId]],
    orgs: [[], ['--without-key'], ['--suspended']],
    keys: [[], ['--expiring'], ['--status', 'active'], ['--scope', 'full'], ['--org', orgId]],
  };
  for (const [name, each] of Object.entries(filters)) for (const args of each) await run('list', name, ...args);
  await run('redispatch', settlementId, ...ACT);
  await runAs([EXIT.preview], ['redispatch', '--all', ...ACT.filter((arg) => arg !== '--yes')]);
  await run('redispatch', '--all', ...ACT);
  await run('cancel', settlementId, ...ACT);
  const paid = await steps.waiting(BY_MANUAL_CARD);
  await sendCardproc(api, cardprocBody(paid, { amount_received: 10_000 }));
  await run('cancel', paid, ...ACT);
  await steps.activities.cancelOnRequest(steps.step(paid));
  await run('refund', 'record', paid, '--amount', '1.00', '--reference', 'bank-1', ...ACT);
  const unknown = await steps.inReview();
  await run('resolve', unknown, 'paid', ...ACT);
  await run('resolve', unknown, 'paid', ...BO);
  await run('retry-delivery', deliveryId, ...ACT);
  await run('retry-deliveries', '--org', orgId, ...ACT);
  await run('retry-deliveries', '--webhook', webhookId, ...ACT);
  await run('webhook', 'disable', subscription.webhook_id, ...ACT);
  await run('webhook', 'enable', subscription.webhook_id, ...ACT);
  const other = await api.createCaller();
  await recordKeys(api.connection.db);
  await run('org', 'reissue-key', other.orgId, ...ACT);
  await run('org', 'reissue-key', other.orgId, ...BO);
  await ops('org', 'suspend', other.orgId, '--operator', 'ana', '--note', 'asked');
  await run('org', 'suspend', other.orgId, ...ACT);
  await run('org', 'resume', other.orgId, ...ACT);
  await run('org', 'tier', other.orgId, 'large', ...ACT);
  await run('limit', 'set', other.orgId, 'wallets', '7', ...ACT);
  await run('key', 'revoke', other.keyId, ...ACT);
  const erased = await createRecipient(api, partner);
  await run('export', 'recipient', erased, ...ACT);
  await api.call(partner, 'DELETE', `/v1/recipients/${erased}`);
  const payee = await createConsumerRecipient(api, await signIn(api));
  for (const id of [erased, payee]) {
    await run('erase', 'recipient', id, ...ACT);
    await run('erase', 'recipient', id, ...BO);
  }
  await run('operator', 'add', 'cy', ...ACT);
  await run('operator', 'list');
  await run('operator', 'add', 'dee', ...ACT);
  await run('operator', 'revoke', 'cy', ...ACT);
  await runOnFilled('audit', 'verify');
  await run('keys', 'list');
  await run('keys', 'record', ...ACT);
  await runOnFilled('keys', 'reseal', ...ACT);
  await run('config', 'check');
  await run('gate', 'list');
  await run('gate', 'explain', 'US-JM');
  const recorded = await run(
    ...['gate', 'record', 'compliance_program', '--corridor', 'US-JM', '--evidence', rail, '--expires', '2027-01-31'],
    ...['--operator', 'ana', '--yes', '--json'],
  );
  const evidenceId = JSON.parse(recorded || '{}').evidence_id ?? '';
  await run('gate', 'approve', evidenceId, ...BO);
  await run('gate', 'revoke', evidenceId, ...ACT);
  rmSync(directory, { recursive: true });
}
