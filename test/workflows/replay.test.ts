import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { expect, test } from 'vitest';
import { replayFaults, testWorkflowBundle } from '../support/temporal.ts';

/**
 * Recorded runs of every path. When a replay fails after the first release, never record the run again: put the change
 * behind `patched()`, or give the workflow a new name.
 */
const HISTORIES = path.join(import.meta.dirname, 'histories');
const files = readdirSync(HISTORIES).filter((file) => file.endsWith('.json'));

/** The paths that must have a recorded history. */
const PATHS = [
  'sandboxCollection.posted-in-parts',
  'sandboxEvent.posted',
  'sandboxVerification.posted',
  'settlement.cancel-refused',
  'settlement.cancel-requested',
  'settlement.canceled',
  'settlement.continued',
  'settlement.expired',
  'settlement.failed',
  'settlement.held-and-expired',
  'settlement.held-and-rejected',
  'settlement.held-until-verified',
  'settlement.payout-confirmed-later',
  'settlement.payout-refused',
  'settlement.rejected',
  'settlement.reviewed-as-paid',
  'settlement.reviewed-as-refused',
  'settlement.settled',
  'settlement.settled-in-parts',
  'verification.verified',
  'webhookLane.served',
  'webhookSubscription.retried',
  'webhookSubscription.woken',
];

test('every path has a recorded history', () => {
  expect(PATHS.filter((name) => !files.includes(`${name}.json`))).toEqual([]);
});

test('every recorded history replays on the current code', async () => {
  const histories = files.map((file) => ({
    workflowId: file,
    history: historyFromJSON(JSON.parse(readFileSync(path.join(HISTORIES, file), 'utf8'))),
  }));
  expect(await replayFaults({ workflowBundle: await testWorkflowBundle() }, histories)).toEqual([]);
});
