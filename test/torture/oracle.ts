/**
 * The oracle lives lives: it creates a settlement, does to it what the life says, reads it all the time, and holds
 * every answer against the model. It uses HTTP, signed provider events and Temporal's own API, and sees nothing else.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import Long from 'long';
import type { Answer, HttpClient, Json } from './client.ts';
import { type Act, type Life, NAMES, sizeMinor } from './life.ts';
import { createModel, isTerminal, type Model, providerOf, refundDueMinor, type Status } from './model.ts';
import { sendProviderEvent } from './provider.ts';

/** An organization of the run, with a key of scope `full`. */
export type Tenant = { readonly orgId: string; readonly apiKey: string };

/** Something that the contract does not allow. */
export type Violation = { readonly life: number; readonly rule: string; readonly detail: string };

export type LivedLife = {
  readonly index: number;
  readonly life: Life;
  readonly tenant: Tenant;
  readonly settlementId: string | undefined;
  readonly violations: readonly Violation[];
  /** The settlement as it was read last. */
  readonly last: Json;
};

export type OracleDeps = {
  readonly http: HttpClient;
  readonly temporal: Client;
  /** Aborts the waits of a run that is over. */
  readonly signal: AbortSignal;
};

const DETAIL_LENGTH_MAX = 600;
const READ_PAUSE_MS = 250;
/** A settlement that has not moved for so long waits for somebody. */
const STILL_MS = 4_000;
/** A run that was ended is found and started again within a minute (contract §6). */
const END_TIMEOUT_MS = 100_000;
const TEMPORAL_TIMEOUT_MS = 5_000;
const SOURCE_CURRENCY = 'USD';
const OTHER_CURRENCY = 'CAD';
const CORRIDOR = 'US-JM';
const SWAPPED_NAME = 'PAYOUT REFUSED SANCTIONED Swap';

const authorize = ({ apiKey }: Tenant, more: Record<string, string> = {}) => ({ 'x-api-key': apiKey, ...more });

/** Lives one life to its end; what went wrong is in the answer, never thrown. */
export async function live(deps: OracleDeps, tenant: Tenant, index: number, life: Life): Promise<LivedLife> {
  const violations: Violation[] = [];
  // A broken rule is seen again at each read: it is reported once.
  const report = (rule: string, detail: string): void => {
    if (!violations.some((known) => known.rule === rule))
      violations.push({ life: index, rule, detail: detail.slice(0, DETAIL_LENGTH_MAX) });
  };
  const lived = (settlementId: string | undefined, last: Json): LivedLife => ({
    index,
    life,
    tenant,
    settlementId,
    violations,
    last,
  });
  let settlementId: string | undefined;
  try {
    const recipientId = await createRecipient(deps.http, tenant, life);
    if (life.verified) await decide(deps.http, tenant, recipientId, 'verified');
    settlementId = await settle(deps.http, tenant, life, recipientId, report);
    if (settlementId === undefined) return lived(undefined, null);
    const course = createCourse(deps, tenant, life, { settlementId, recipientId, report });
    for (const act of life.acts) {
      await delay(act.pauseMs);
      await course.act(act);
    }
    return lived(settlementId, await course.finish());
  } catch (error) {
    report('no answer', error instanceof Error ? error.message : String(error));
    return lived(settlementId, null);
  }
}

async function createRecipient(http: HttpClient, tenant: Tenant, life: Life): Promise<string> {
  const body = { kind: 'contractor', entity_type: 'individual', country: 'JM', name: NAMES[life.name] };
  const created = await http.untilAnswered({
    method: 'POST',
    path: '/v1/recipients',
    headers: authorize(tenant),
    body: { ...body, bank_details: { bank_name: 'First Bank', account_number: '111122223333', currency: 'JMD' } },
  });
  return created.body.recipient_id;
}

/** Opens a verification of the recipient and decides it; an open one of before is decided as well. */
async function decide(
  http: HttpClient,
  tenant: Tenant,
  recipientId: string,
  status: 'verified' | 'rejected',
): Promise<boolean> {
  const opened = await http.untilAnswered({
    method: 'POST',
    path: '/v1/kyc/verify',
    headers: authorize(tenant, { 'idempotency-key': crypto.randomUUID() }),
    body: { recipient_id: recipientId, org_id: tenant.orgId },
  });
  if (opened.status !== 201) return false;
  const decided = await http.untilAnswered({
    method: 'POST',
    path: `/v1/kyc/${opened.body.verification_id}/complete`,
    headers: authorize(tenant),
    body: { status, ...(status === 'rejected' ? { rejection_reason: 'torture' } : {}) },
  });
  return decided.status === 200;
}

/** @returns the settlement's id; undefined after a violation that leaves nothing to go on with */
async function settle(
  http: HttpClient,
  tenant: Tenant,
  life: Life,
  recipientId: string,
  report: (rule: string, detail: string) => void,
): Promise<string | undefined> {
  const key = crypto.randomUUID();
  const { path, body } = await settleCommand(http, tenant, life, recipientId);
  const headers = authorize(tenant, { 'idempotency-key': key });
  const send = (changed: object = {}) =>
    http.untilAnswered({ method: 'POST', path, headers, body: { ...body, ...changed } });
  const answers = await Promise.all(Array.from({ length: life.copies }, () => send()));
  const [first] = answers;
  const wanted = life.payment === 'internal' ? 201 : 202;
  if (first?.status !== wanted) {
    report('acceptance', `answered ${first?.status}: ${first?.text}`);
    return undefined;
  }
  if (answers.some(({ text, status }) => text !== first.text || status !== wanted))
    report('one key, one answer', `copies of one request got different answers: ${answers.map(({ text }) => text)}`);
  if (life.reusesKey) {
    const other = await send({ reference: 'other bytes' });
    if (other.status !== 409 || other.body.code !== 'idempotency_key_reused')
      report('one key, one command', `other bytes under the same key were answered ${other.status}: ${other.text}`);
  }
  return first.body.settlement_id;
}

async function settleCommand(http: HttpClient, tenant: Tenant, life: Life, recipientId: string) {
  const amount = `${Math.floor(life.amountMinor / 100)}.${String(life.amountMinor % 100).padStart(2, '0')}`;
  const body = { corridor: CORRIDOR, amount, recipient_id: recipientId, payout_rail: 'bank_transfer' };
  switch (life.payment) {
    case 'internal':
      return { path: '/v1/caribbean/settle', body };
    case 'card':
      return { path: '/v2/settle', body: { ...body, payment_method: 'card', card_token: life.cardToken } };
    case 'wire':
      return { path: '/v2/settle', body: { ...body, payment_method: 'wire' } };
    case 'ach': {
      const exchanged = await http.untilAnswered({
        method: 'POST',
        path: '/v2/banklink/exchange',
        headers: authorize(tenant),
        body: { public_token: life.achToken },
      });
      const token: string = exchanged.body.access_token;
      return { path: '/v2/settle', body: { ...body, payment_method: 'ach', banklink_account_token: token } };
    }
  }
}

type Course = { act(act: Act): Promise<void>; finish(): Promise<Json> };
type Subject = {
  readonly settlementId: string;
  readonly recipientId: string;
  readonly report: (rule: string, detail: string) => void;
};

/** What happens to an accepted settlement, act by act. */
function createCourse({ http, temporal, signal }: OracleDeps, tenant: Tenant, life: Life, subject: Subject): Course {
  const { settlementId, recipientId, report } = subject;
  const model = createModel(life);
  let renamed = false;
  let events = 0;
  const observe = (fact: Parameters<Model['observe']>[0], answer?: Answer): void => {
    const before = model.statuses().join(', ');
    if (!model.observe(fact))
      report('contract', `${JSON.stringify(fact)} contradicts ${before}${answer ? `: ${answer.text}` : ''}`);
  };
  const call = (method: 'POST' | 'PUT' | 'DELETE', path: string, body: object = {}) =>
    http.untilAnswered({ method, path, headers: authorize(tenant), body });
  const read = async (): Promise<Json> => {
    const answer = await http.untilAnswered({ path: `/v2/settle/${settlementId}`, headers: authorize(tenant) });
    if (answer.status !== 200) throw new Error(`the settlement is ${answer.status} to its owner: ${answer.text}`);
    requireConsistentRead(life, answer.body, report);
    observe({ kind: 'seen', status: answer.body.status });
    return answer.body;
  };

  const sendEvent = async (
    what: 'collected' | 'failed' | 'dispute',
    copies: number,
    amountMinor: number,
    own = true,
  ) => {
    if (providerOf(life.payment) === undefined) return;
    events += 1;
    const event = {
      id: `evt_${settlementId}_t${events}`,
      settlementId,
      what,
      amountMinor,
      currency: own ? SOURCE_CURRENCY : OTHER_CURRENCY,
    };
    const answers = await Promise.all(
      Array.from({ length: copies }, () => sendProviderEvent(http, life.payment, event)),
    );
    const fresh = answers.filter((answer) => answer?.body.duplicate === false).length;
    if (answers.some((answer) => answer?.status !== 200 || answer.body.matched !== true) || fresh > 1)
      report('evidence', `event ${event.id} was answered ${answers.map((answer) => answer?.text).join(' ')}`);
    if (what === 'collected') observe({ kind: 'collected', amountMinor, ownCurrency: own });
    else observe({ kind: what === 'dispute' && life.payment === 'card' ? 'dispute' : 'collection_failed' });
  };

  const advance = async (): Promise<void> => {
    const path = `/v2/test-helpers/settlements/${settlementId}/advance`;
    const answer = await http.once({ method: 'POST', path, headers: authorize(tenant), body: {} });
    if (!answer) observe({ kind: 'advance_unanswered' });
    else observe({ kind: 'advance', accepted: answer.status === 202 }, answer);
  };
  const decideNow = async (decision: 'verified' | 'rejected'): Promise<void> => {
    if (await decide(http, tenant, recipientId, decision))
      observe({ kind: 'decided', decision, ofFrozenName: !renamed });
  };
  const cancelRun = async (): Promise<void> => {
    const handle = temporal.workflow.getHandle(`settlement:${settlementId}`);
    const asked = await temporal
      .withDeadline(Date.now() + TEMPORAL_TIMEOUT_MS, () => handle.cancel())
      .then(
        () => true,
        () => false,
      );
    if (asked) observe({ kind: 'cancel_requested' });
  };
  const disturbRun = async (kind: 'temporal_terminate' | 'temporal_reset'): Promise<void> => {
    const handle = temporal.workflow.getHandle(`settlement:${settlementId}`);
    const run = async () => {
      if (kind === 'temporal_terminate') await handle.terminate('torture');
      else await resetRun(temporal, settlementId);
    };
    // A run that has not started, or has ended, cannot be disturbed.
    await temporal.withDeadline(Date.now() + TEMPORAL_TIMEOUT_MS, run).catch(() => undefined);
  };

  const act = async (given: Act): Promise<void> => {
    switch (given.kind) {
      case 'cancel': {
        const answer = await call('POST', `/v2/settle/${settlementId}/cancel`);
        observe({ kind: 'cancel', accepted: answer.status === 200 }, answer);
        break;
      }
      case 'rename': {
        const answer = await call('PUT', `/v1/recipients/${recipientId}`, {
          name: SWAPPED_NAME,
          bank_details: { bank_name: 'Other Bank', account_number: '999988887777', currency: 'JMD' },
        });
        renamed ||= answer.status === 200;
        break;
      }
      case 'change_account':
        await call('PUT', `/v1/recipients/${recipientId}`, {
          bank_details: { bank_name: 'Other Bank', account_number: '999988887777', currency: 'JMD' },
        });
        break;
      case 'deactivate': {
        const answer = await call('DELETE', `/v1/recipients/${recipientId}`);
        if (answer.status === 200) observe({ kind: 'deactivated' });
        break;
      }
      case 'verify':
        await decideNow('verified');
        break;
      case 'reject':
        await decideNow('rejected');
        break;
      case 'advance':
        await advance();
        break;
      case 'collected':
        await sendEvent('collected', given.copies, sizeMinor(given.size, life.amountMinor), given.currency === 'own');
        break;
      case 'collection_failed':
        await sendEvent('failed', given.copies, life.amountMinor);
        break;
      case 'dispute':
        await sendEvent('dispute', given.copies, life.amountMinor);
        break;
      case 'temporal_cancel':
        await cancelRun();
        break;
      case 'temporal_terminate':
      case 'temporal_reset':
        await disturbRun(given.kind);
        break;
    }
    await read();
  };

  /** Moves the settlement on where it waits for somebody, until it has ended and nothing more comes. */
  const finish = async (): Promise<Json> => {
    const end = Date.now() + END_TIMEOUT_MS;
    let latest = await read();
    let changedAt = Date.now();
    while (!signal.aborted && Date.now() < end) {
      const still = Date.now() - changedAt > STILL_MS;
      if (still && isTerminal(latest.status)) break;
      if (still) {
        if (latest.status === 'needs_review') await resolveReview(temporal, settlementId, life.review, observe);
        else await advance();
        changedAt = Date.now();
      }
      await delay(READ_PAUSE_MS);
      const next = await read();
      if (next.status !== latest.status || next.amount_received !== latest.amount_received) changedAt = Date.now();
      latest = next;
    }
    requireEnd(model, life, latest, report);
    return latest;
  };
  return { act, finish };
}

async function resolveReview(
  temporal: Client,
  settlementId: string,
  outcome: 'paid' | 'refused',
  observe: (fact: Parameters<Model['observe']>[0]) => void,
): Promise<void> {
  const handle = temporal.workflow.getHandle(`settlement:${settlementId}`);
  const resolution = { outcome, operator: 'oracle', note: 'torture' };
  const options: { args: [object]; updateId: string } = {
    args: [resolution],
    updateId: `resolve-review:${settlementId}`,
  };
  const resolved = await temporal
    .withDeadline(Date.now() + TEMPORAL_TIMEOUT_MS, () =>
      handle.executeUpdate<unknown, [object]>('resolveReview', options),
    )
    .then(
      () => true,
      () => false,
    );
  observe({ kind: resolved ? 'resolved' : 'resolve_unanswered', outcome });
}

/** Resets the run to its first workflow task, as Temporal UI offers it. */
async function resetRun(temporal: Client, settlementId: string): Promise<void> {
  const workflowId = `settlement:${settlementId}`;
  const { runId } = await temporal.workflow.getHandle(workflowId).describe();
  await temporal.workflowService.resetWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId, runId },
    reason: 'torture',
    workflowTaskFinishEventId: Long.fromNumber(FIRST_TASK_COMPLETED),
    requestId: crypto.randomUUID(),
  });
}

/** Started, task scheduled, task started, then this one. */
const FIRST_TASK_COMPLETED = 4;

/** One read must not contradict itself: it is one moment of the settlement. */
function requireConsistentRead(life: Life, read: Json, report: (rule: string, detail: string) => void): void {
  const times = read.timeline.map(({ at }: Json) => at);
  const statuses: Status[] = read.timeline.map(({ status }: Json) => status);
  if (statuses.at(-1) !== read.status) report('torn read', `${read.status}, timeline ${statuses.join(' ')}`);
  if ((read.certificate_id !== null) !== (read.status === 'settled'))
    report('torn read', `${read.status} with certificate ${read.certificate_id}`);
  if (times.some((at: string, index: number) => index > 0 && at < times[index - 1]))
    report('time runs back', times.join(' '));
  if (new Set(statuses).size !== statuses.length) report('state entered twice', statuses.join(' '));
  const receivedMinor = minorOf(read.amount_received);
  const due = refundDueMinor(life, read.status, receivedMinor);
  if (read.amount_refund_due === undefined) report('refund is shown', 'the read has no amount_refund_due');
  else if (minorOf(read.amount_refund_due) !== due)
    report('refund due', `${read.status}, received ${read.amount_received}, due ${read.amount_refund_due}`);
  if (read.payee === undefined) report('payee is frozen', 'the read has no payee');
  else if (read.payee.name !== NAMES[life.name] || read.payee.account_last4 !== '3333')
    report('payee is frozen', `the payee is ${JSON.stringify(read.payee)}`);
}

/** Minor units of a decimal string with two digits. */
export const minorOf = (amount: string): number => Number(amount.replace('.', ''));

function requireEnd(model: Model, life: Life, last: Json, report: (rule: string, detail: string) => void): void {
  if (!isTerminal(last.status)) {
    report('no end', `the settlement stays ${last.status}`);
    return;
  }
  const receivedMinor = minorOf(last.amount_received);
  const ends = model.quiet();
  if (ends.some((world) => world.status === last.status && world.receivedMinor === receivedMinor)) return;
  const allowed = ends.map((world) => `${world.status} with ${world.receivedMinor}`).join(', ');
  report('end', `${last.status} with ${receivedMinor} of ${life.amountMinor}; the contract allows ${allowed}`);
}
