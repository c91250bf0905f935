/** What happens to an accepted settlement, act by act, until it has ended. Every answer is compared with the model. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { stretched } from '../support/patience.ts';
import type { Arrival } from './arrival.ts';
import type { Answer, HttpClient, Json } from './client.ts';
import { disturbRun, type RunDisturbance } from './disturbance.ts';
import { createModel, type Fact, type Model } from './model.ts';
import type { Operate } from './operator.ts';
import { type ProviderEvent, RETURN_CODE, sendOrdinaryEvent, sendProviderEvent } from './provider.ts';
import { minorOf, requireConsistent, seenIn } from './read.ts';
import { type Act, type Scenario, sizeMinor } from './scenario.ts';
import { authorize, decide, type Tenant } from './tenant.ts';
import type { Report } from './violation.ts';
import { decimal, isTerminal, OWN_CURRENCY, type RailAnswer } from './world.ts';

export type CourseDeps = {
  readonly http: HttpClient;
  readonly temporal: Client;
  readonly operate: Operate;
  /** When the stack was last disturbed, as `Date.now()`: how long something may take counts from then. */
  readonly disturbedAt: () => number;
  /** Aborted when the run is over: scenarios under way end. */
  readonly signal: AbortSignal;
  /** Is called after each try to disturb a run by Temporal's own API. `isDone`: it truly happened. */
  readonly onDisturbance: (kind: RunDisturbance, isDone: boolean) => void;
};

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
const MOVE_TIMEOUT_MS = stretched(100_000);
const FINISH_TIMEOUT_MS = stretched(300_000);
/** Longer than any fault of a plan, with the restart after it. */
const OPERATE_TIMEOUT_MS = stretched(90_000);
const OTHER_CURRENCY = 'CAD';
const SWAPPED_NAME = 'PAYOUT REFUSED SANCTIONED Swap';
const SWAPPED_ACCOUNT = { bank_name: 'Other Bank', account_number: '999988887777', currency: 'JMD' };

/** What the acts of one scenario share. */
type Context = CourseDeps & Subject & { readonly tenant: Tenant; readonly scenario: Scenario; readonly model: Model };

export function createCourse(deps: CourseDeps, tenant: Tenant, scenario: Scenario, subject: Subject): Course {
  const context: Context = { ...deps, ...subject, tenant, scenario, model: createModel(scenario) };
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
  const { http, tenant, settlementId, scenario, report } = context;
  const answer = await http.untilAnswered({ path: `/v2/settle/${settlementId}`, headers: authorize(tenant) });
  if (answer.status !== 200) throw new Error(`the settlement is ${answer.status} to its owner: ${answer.text}`);
  requireConsistent(scenario, answer.body, report);
  observe(context, { kind: 'seen', seen: seenIn(answer.body) }, answer);
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
      if (ended) return await giveBack(context, latest);
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
  const { settlementId, scenario } = context;
  const isDone = await resolveReview(context, settlementId, scenario.review);
  const outcome: RailAnswer = scenario.review === 'paid' ? 'confirmed' : 'refused';
  return observe(context, { kind: isDone ? 'resolved' : 'resolution_unknown', outcome });
}

/** An operator gives back what the scenario says, of what is due. */
async function giveBack(context: Context, last: Json): Promise<Json> {
  const { scenario, settlementId, operate, signal, report } = context;
  const dueMinor = minorOf(last.amount_refund_due);
  const amountMinor = scenario.refund === 'half' ? Math.ceil(dueMinor / 2) : dueMinor;
  if (scenario.refund === 'nothing' || amountMinor === 0) return last;
  const args = ['refund', 'record', settlementId, '--amount', decimal(amountMinor), '--reference', 'torture'];
  const end = Date.now() + OPERATE_TIMEOUT_MS;
  let outcome = await operate(args);
  // The same reference is recorded once, so the command may be repeated.
  while (outcome === 'unknown' && !signal.aborted) {
    if (Date.now() > end) throw new Error('the refund could not be recorded');
    outcome = await operate(args);
  }
  if (outcome === 'done') observe(context, { kind: 'refunded', amountMinor });
  const latest = await read(context);
  if (outcome === 'refused' && minorOf(latest.amount_refund_due) >= amountMinor)
    report('what is due back can be given back', `${amountMinor} was refused: ${JSON.stringify(latest)}`);
  return latest;
}

/** @returns what carries an act out */
function createActs(context: Context): (act: Act) => Promise<void> {
  const { http, tenant, settlementId, recipientId, scenario } = context;
  const progress: { renamed: boolean; events: number } = { renamed: false, events: 0 };
  const call = (method: 'POST' | 'PUT' | 'DELETE', path: string, body: object = {}) =>
    http.untilAnswered({ method, path, headers: authorize(tenant), body });
  const decideNow = async (decision: 'verified' | 'rejected'): Promise<void> => {
    // A decision about another name decides nothing about this settlement.
    if (progress.renamed) return void (await decide(http, tenant, recipientId, decision));
    observe(context, { kind: 'verification_opening' });
    if (await decide(http, tenant, recipientId, decision)) observe(context, { kind: 'decided', decision });
  };
  const send = async (
    what: ProviderEvent['what'],
    copies: number,
    money: Pick<ProviderEvent, 'amountMinor' | 'currency'>,
  ) => {
    progress.events += 1;
    await sendCopies(context, { id: `evt_${settlementId}_t${progress.events}`, settlementId, what, ...money }, copies);
  };
  const own = { amountMinor: scenario.amountMinor, currency: OWN_CURRENCY };
  return async (act) => {
    switch (act.kind) {
      case 'cancel': {
        const answer = await call('POST', `/v2/settle/${settlementId}/cancel`);
        return observe(context, { kind: 'cancel', accepted: answer.status === 200 }, answer);
      }
      case 'rename': {
        const change = { name: SWAPPED_NAME, bank_details: SWAPPED_ACCOUNT };
        const answer = await call('PUT', `/v1/recipients/${recipientId}`, change);
        if (answer.status !== 200 || progress.renamed) return;
        progress.renamed = true;
        if (['verified', 'rejected'].includes(answer.body.verification_status))
          context.report('another name is unverified', answer.text);
        return observe(context, { kind: 'renamed' });
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
      case 'collected':
      case 'taken_back': {
        const currency = act.currency === 'own' ? OWN_CURRENCY : OTHER_CURRENCY;
        return await send(act.kind, act.copies, { amountMinor: sizeMinor(act.size, scenario.amountMinor), currency });
      }
      case 'collection_failed':
        return await send('failed', act.copies, own);
      case 'rail_answers':
        return await requestAnswer(context, act.answer);
      case 'temporal_cancel':
      case 'temporal_terminate':
      case 'temporal_reset':
        return await disturb(context, act.kind);
    }
  };
}

async function disturb(context: Context, kind: RunDisturbance): Promise<void> {
  const outcome = await disturbRun(context.temporal, context.settlementId, kind);
  context.onDisturbance(kind, outcome === 'done');
  if (kind === 'temporal_cancel' && outcome !== 'no run') observe(context, { kind: 'cancel_requested' });
}

/** Sends copies of one signed event at the same moment. At most one of them may count. */
async function sendCopies(context: Context, event: ProviderEvent, copies: number): Promise<void> {
  const { http, scenario, report } = context;
  const { payment } = scenario;
  // The service funds it itself: no provider reports about it.
  if (payment === 'internal') return;
  const answers = await Promise.all(Array.from({ length: copies }, () => sendProviderEvent(http, payment, event)));
  const fresh = answers.filter((answer) => answer.body.duplicate === false).length;
  if (answers.some((answer) => answer.status !== 200 || answer.body.matched !== true) || fresh > 1)
    report('one event, one receipt', `${event.id} was answered ${answers.map(({ text }) => text).join(' ')}`);
  observe(context, { kind: 'arrived', arrival: arrivalOf(payment, event) });
}

/** What a provider's event says to the service. */
function arrivalOf(payment: Scenario['payment'], { what, amountMinor, currency }: ProviderEvent): Arrival {
  if (what === 'collected') return { what, amountMinor, currency };
  if (payment !== 'card') return { what: 'returned', amountMinor, currency, code: RETURN_CODE };
  if (what === 'failed') return { what, code: 'collection_failed' };
  return { what: 'disputed', amountMinor: amountMinor === 0 ? null : amountMinor, currency };
}

/** Each accepted request is an answer of its own, so the request is not repeated. */
async function requestAnswer(context: Context, answer: RailAnswer): Promise<void> {
  const { http, tenant, settlementId } = context;
  const path = `/v2/test-helpers/settlements/${settlementId}/events`;
  const body = { event: `payout_${answer}` };
  const given = await http.once({ method: 'POST', path, headers: authorize(tenant), body });
  observe(context, { kind: 'answer_requested', answer, accepted: given && given.status === 202 }, given);
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

/** Decides the review as an operator does. @returns false when it is not known that it is decided so */
export const resolveReview = async (
  { operate }: Pick<CourseDeps, 'operate'>,
  settlementId: string,
  outcome: Scenario['review'],
): Promise<boolean> => (await operate(['resolve', settlementId, outcome])) === 'done';
