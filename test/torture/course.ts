/** What happens to an accepted settlement, act by act, until it has ended. Every answer is compared with the model. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import Long from 'long';
import type { Answer, HttpClient, Json } from './client.ts';
import { type Act, type Life, sizeMinor } from './life.ts';
import { createModel, type Fact, isTerminal, type Model } from './model.ts';
import { type ProviderEvent, sendOrdinaryEvent, sendProviderEvent } from './provider.ts';
import { minorOf, requireConsistent } from './read.ts';
import { authorize, decide, type Tenant } from './tenant.ts';
import type { Report } from './violation.ts';

export type CourseDeps = {
  readonly http: HttpClient;
  readonly temporal: Client;
  /** When the stack was last disturbed, as `Date.now()`: how long something may take counts from then. */
  readonly disturbedAt: () => number;
  /** Aborted when the run is over: lives under way end. */
  readonly signal: AbortSignal;
  /** Is called when something was truly done to a run by Temporal's own API. */
  readonly onDisturbedRun: (kind: RunDisturbance) => void;
};

/** What operators can do to a run in Temporal UI. */
export const RUN_DISTURBANCES = ['temporal_cancel', 'temporal_terminate', 'temporal_reset'] as const;
export type RunDisturbance = (typeof RUN_DISTURBANCES)[number];

export type Course = {
  act(act: Act): Promise<void>;
  /** Moves the settlement on where it waits for somebody, until it has ended. Returns it as it was read last. */
  finish(): Promise<Json>;
  /** Reads the settlement again after it has ended. */
  requireUnchanged(last: Json): Promise<void>;
};

export type Subject = { readonly settlementId: string; readonly recipientId: string; readonly report: Report };

const READ_PAUSE_MS = 250;
/** When the model does not know whether the settlement still moves, it is left alone for so long. */
const STILL_MS = 3_000;
/** A run that was ended is started again within a minute (contract §6), and faults may delay that. */
const MOVE_TIMEOUT_MS = 100_000;
const FINISH_TIMEOUT_MS = 300_000;
const TEMPORAL_TIMEOUT_MS = 5_000;
const SOURCE_CURRENCY = 'USD';
const OTHER_CURRENCY = 'CAD';
const SWAPPED_NAME = 'PAYOUT REFUSED SANCTIONED Swap';
const SWAPPED_ACCOUNT = { bank_name: 'Other Bank', account_number: '999988887777', currency: 'JMD' };

/** What the acts of one life share. */
type Context = CourseDeps & Subject & { readonly tenant: Tenant; readonly life: Life; readonly model: Model };

export function createCourse(deps: CourseDeps, tenant: Tenant, life: Life, subject: Subject): Course {
  const context: Context = { ...deps, ...subject, tenant, life, model: createModel(life) };
  const acts = createActs(context);
  return {
    async act(given) {
      await acts(given);
      await read(context);
    },
    finish: () => finish(context),
    async requireUnchanged(last) {
      // Late money may still have come: then the model knows of it.
      const now = await read(context);
      for (const field of ['status', 'timeline', 'certificate_id', 'failure']) {
        if (JSON.stringify(now[field]) !== JSON.stringify(last[field]))
          subject.report('what has ended stays', `${field} was ${JSON.stringify(last[field])}: ${JSON.stringify(now)}`);
      }
    },
  };
}

function observe({ model, report }: Context, fact: Fact, answer?: Answer): void {
  const before = model.statuses().join(', ');
  if (!model.observe(fact))
    report('contract §6', `${JSON.stringify(fact)} is not possible in ${before}${answer ? `: ${answer.text}` : ''}`);
}

async function read(context: Context): Promise<Json> {
  const { http, tenant, settlementId, life, report } = context;
  const answer = await http.untilAnswered({ path: `/v2/settle/${settlementId}`, headers: authorize(tenant) });
  if (answer.status !== 200) throw new Error(`the settlement is ${answer.status} to its owner: ${answer.text}`);
  requireConsistent(life, answer.body, report);
  const receivedMinor = minorOf(answer.body.amount_received);
  observe(context, { kind: 'seen', status: answer.body.status, receivedMinor });
  return answer.body;
}

async function finish(context: Context): Promise<Json> {
  const { signal, model, report, disturbedAt } = context;
  const beganAt = Date.now();
  let latest = await read(context);
  let changedAt = Date.now();
  while (!signal.aborted) {
    const ended = isTerminal(latest.status);
    const stillMs = Date.now() - changedAt;
    const motion = model.motion();
    if (motion === 'none' || (stillMs > STILL_MS && (ended || motion === 'possible'))) {
      if (ended) return latest;
      await moveOn(context, latest.status);
      changedAt = Date.now();
    }
    const now = Date.now();
    if (
      now - Math.max(changedAt, disturbedAt()) > MOVE_TIMEOUT_MS ||
      now - Math.max(beganAt, disturbedAt()) > FINISH_TIMEOUT_MS
    ) {
      report('no settlement stops half-way', `it stays ${latest.status}, with ${latest.amount_received}`);
      return latest;
    }
    await delay(READ_PAUSE_MS);
    const next = await read(context);
    if (next.status !== latest.status || next.amount_received !== latest.amount_received) changedAt = Date.now();
    latest = next;
  }
  return latest;
}

/** Does what the settlement waits for: an operator decides, or the time of its wait is over. */
async function moveOn(context: Context, status: string): Promise<void> {
  if (status !== 'needs_review') return await advance(context);
  const { temporal, settlementId, life } = context;
  const isKnown = await resolveReview(temporal, settlementId, life.review);
  return observe(context, { kind: isKnown ? 'resolved' : 'resolution_unknown', outcome: life.review });
}

/** @returns what carries an act out */
function createActs(context: Context): (act: Act) => Promise<void> {
  const { http, tenant, settlementId, recipientId, life } = context;
  const progress = { renamed: false, events: 0 };
  const call = (method: 'POST' | 'PUT' | 'DELETE', path: string, body: object = {}) =>
    http.untilAnswered({ method, path, headers: authorize(tenant), body });
  const decideNow = async (decision: 'verified' | 'rejected'): Promise<void> => {
    observe(context, { kind: 'verification_opening' });
    if (await decide(http, tenant, recipientId, decision))
      observe(context, { kind: 'decided', decision, ofFrozenName: !progress.renamed });
  };
  const send = async (
    what: ProviderEvent['what'],
    copies: number,
    money: Pick<ProviderEvent, 'amountMinor' | 'currency'>,
  ) => {
    progress.events += 1;
    await sendCopies(context, { id: `evt_${settlementId}_t${progress.events}`, settlementId, what, ...money }, copies);
  };
  const own = { amountMinor: life.amountMinor, currency: SOURCE_CURRENCY };
  return async (act) => {
    switch (act.kind) {
      case 'cancel': {
        const answer = await call('POST', `/v2/settle/${settlementId}/cancel`);
        return observe(context, { kind: 'cancel', accepted: answer.status === 200 }, answer);
      }
      case 'rename': {
        const change = { name: SWAPPED_NAME, bank_details: SWAPPED_ACCOUNT };
        const answer = await call('PUT', `/v1/recipients/${recipientId}`, change);
        progress.renamed ||= answer.status === 200;
        return;
      }
      case 'change_account':
        await call('PUT', `/v1/recipients/${recipientId}`, { bank_details: SWAPPED_ACCOUNT });
        return;
      case 'deactivate': {
        const answer = await call('DELETE', `/v1/recipients/${recipientId}`);
        if (answer.status === 200) observe(context, { kind: 'deactivated' });
        return;
      }
      case 'verify':
        return await decideNow('verified');
      case 'reject':
        return await decideNow('rejected');
      case 'advance':
        return await advance(context);
      case 'redeliver':
        return await redeliver(context);
      case 'ordinary_event':
        return await sendOrdinary(context);
      case 'collected': {
        const currency = act.currency === 'own' ? SOURCE_CURRENCY : OTHER_CURRENCY;
        return await send('collected', act.copies, { amountMinor: sizeMinor(act.size, life.amountMinor), currency });
      }
      case 'collection_failed':
        return await send('failed', act.copies, own);
      case 'dispute':
        return await send('dispute', act.copies, own);
      case 'temporal_cancel':
        return await cancelRun(context);
      case 'temporal_terminate':
      case 'temporal_reset':
        return await disturbRun(context, act.kind);
    }
  };
}

/** Sends copies of one signed event at the same moment. At most one of them may count. */
async function sendCopies(context: Context, event: ProviderEvent, copies: number): Promise<void> {
  const { http, life, report } = context;
  const { payment } = life;
  // The service funds it itself: no provider reports about it.
  if (payment === 'internal') return;
  const answers = await Promise.all(Array.from({ length: copies }, () => sendProviderEvent(http, payment, event)));
  const fresh = answers.filter((answer) => answer.body.duplicate === false).length;
  if (answers.some((answer) => answer.status !== 200 || answer.body.matched !== true) || fresh > 1)
    report('one event, one receipt', `${event.id} was answered ${answers.map(({ text }) => text).join(' ')}`);
  const { what, amountMinor, currency } = event;
  if (what === 'collected')
    observe(context, { kind: 'collected', amountMinor, ownCurrency: currency === SOURCE_CURRENCY });
  // The bank ledger knows no dispute: a return is sent instead (provider.ts).
  else observe(context, { kind: what === 'dispute' && payment === 'card' ? 'dispute' : 'collection_failed' });
}

async function sendOrdinary({ http, report }: Context): Promise<void> {
  const answer = await sendOrdinaryEvent(http);
  if (answer.status !== 200 || answer.body.matched !== false)
    report('an ordinary event is stored', `answered ${answer.status}: ${answer.text}`);
}

async function advance(context: Context): Promise<void> {
  const { http, tenant, settlementId } = context;
  const path = `/v2/test-helpers/settlements/${settlementId}/advance`;
  // Moving the clock twice is not the same as once, so the request is not repeated.
  const answer = await http.once({ method: 'POST', path, headers: authorize(tenant), body: {} });
  if (!answer) observe(context, { kind: 'advance_unknown' });
  else observe(context, { kind: 'advance', accepted: answer.status === 202 }, answer);
}

/** Asks for the tenant's latest delivery again. */
async function redeliver({ http, tenant, report }: Context): Promise<void> {
  if (tenant.webhookId === undefined) return;
  const path = `/v1/webhooks/${tenant.webhookId}/deliveries`;
  const listed = await http.untilAnswered({ path: `${path}?limit=1`, headers: authorize(tenant) });
  const [delivery] = listed.body;
  if (delivery === undefined) return;
  const call = {
    method: 'POST',
    path: `${path}/${delivery.delivery_id}/redeliver`,
    headers: authorize(tenant),
    body: {},
  } as const;
  const answer = await http.untilAnswered(call);
  if (answer.status !== 202 || answer.body.event_id !== delivery.event_id)
    report('a delivery can be asked for again', `answered ${answer.status}: ${answer.text}`);
}

/** Requests a cancellation as Temporal UI does. */
async function cancelRun(context: Context): Promise<void> {
  const { temporal, settlementId, onDisturbedRun } = context;
  const handle = temporal.workflow.getHandle(`settlement:${settlementId}`);
  const outcome = await temporal
    .withDeadline(Date.now() + TEMPORAL_TIMEOUT_MS, () => handle.cancel())
    .then(
      () => 'requested',
      (error: unknown) => (error instanceof WorkflowNotFoundError ? 'no run' : 'unknown'),
    );
  if (outcome === 'requested') onDisturbedRun('temporal_cancel');
  if (outcome !== 'no run') observe(context, { kind: 'cancel_requested' });
}

/** Nothing happens when there is no run: it has not started, or has ended. */
async function disturbRun(context: Context, kind: 'temporal_terminate' | 'temporal_reset'): Promise<void> {
  const { temporal, settlementId, onDisturbedRun } = context;
  const workflowId = `settlement:${settlementId}`;
  const disturb = (): Promise<unknown> =>
    kind === 'temporal_reset'
      ? resetRun(temporal, workflowId)
      : temporal.workflow.getHandle(workflowId).terminate('torture');
  await temporal
    .withDeadline(Date.now() + TEMPORAL_TIMEOUT_MS, disturb)
    .then(() => onDisturbedRun(kind))
    .catch(() => undefined);
}

/** The first workflow task's completion. Before it are: started, task scheduled, task started. */
const FIRST_TASK_COMPLETED = 4;

/** Resets the run to its first workflow task, as Temporal UI offers it. */
async function resetRun(temporal: Client, workflowId: string): Promise<void> {
  const { runId } = await temporal.workflow.getHandle(workflowId).describe();
  await temporal.workflowService.resetWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId, runId },
    reason: 'torture',
    workflowTaskFinishEventId: Long.fromNumber(FIRST_TASK_COMPLETED),
    requestId: crypto.randomUUID(),
  });
}

/**
 * Decides the review as an operator does.
 *
 * @returns false when it is unknown whether the decision has arrived
 */
export async function resolveReview(temporal: Client, settlementId: string, outcome: Life['review']): Promise<boolean> {
  const options: { args: [object]; updateId: string } = {
    args: [{ outcome, operator: 'oracle', note: 'torture' }],
    updateId: `resolve-review:${settlementId}`,
  };
  const handle = temporal.workflow.getHandle(`settlement:${settlementId}`);
  return await temporal
    .withDeadline(Date.now() + TEMPORAL_TIMEOUT_MS, () =>
      handle.executeUpdate<unknown, [object]>('resolveReview', options),
    )
    .then(
      () => true,
      () => false,
    );
}
