/**
 * A lane (contract §11): always running, so that an event costs Temporal nothing. Its one activity sends; the run only
 * shows operators what the activity reports, and continues as a new run now and then.
 */
import { setHandler, workflowInfo } from '@temporalio/workflow';
import { laneAdvice } from '../domain/operator-advice.ts';
import type { LaneReport } from '../domain/webhook.ts';
import { laneActivity } from './activities.ts';
import { laneReported, type WebhookLaneInput } from './contract.ts';
import { publishDetails } from './details.ts';
import { continueAsNewRun } from './new-run.ts';
import { uncancelable } from './uncancelable.ts';

export const webhookLane = uncancelable(serve);

async function serve({ lane }: WebhookLaneInput): Promise<void> {
  setHandler(laneReported, publishReport);
  while (!workflowInfo().continueAsNewSuggested) {
    const { isServed } = await laneActivity('Deliver events').serveLane({ lane });
    if (!isServed) return;
  }
  await continueAsNewRun<WebhookLaneInput>({ lane });
}

function publishReport({ at, inFlight, sent, failed, oldestDueAt, slowest }: LaneReport): void {
  publishDetails(
    [
      `In the minute before ${at}:`,
      `Requests: **${sent}** sent, **${failed}** failed; **${inFlight}** in flight now`,
      `Oldest delivery not taken yet, due: ${oldestDueAt ?? 'none'}`,
      ...(slowest.length === 0 ? [] : ['Subscriptions that took longest:']),
      ...slowest.map(
        ({ webhookId, requests, meanMs }) => `- \`${webhookId}\`: ${requests} requests, ${meanMs} ms each`,
      ),
    ],
    laneAdvice(oldestDueAt !== null),
  );
}
