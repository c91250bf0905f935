/**
 * The oracle plays scenarios: it creates a settlement, does to it what the scenario says, reads it all the time, and
 * compares every answer with the model. It uses HTTP, signed provider events and Temporal's own API, and sees nothing
 * else.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Answer, HttpClient, Json } from './client.ts';
import { type CourseDeps, createCourse } from './course.ts';
import { NAMES, type Scenario } from './scenario.ts';
import { authorize, createRecipient, decide, type Tenant } from './tenant.ts';
import type { Report, Violation } from './violation.ts';
import { decimal } from './world.ts';

export type PlayedScenario = {
  readonly index: number;
  readonly scenario: Scenario;
  readonly tenant: Tenant;
  readonly violations: readonly Violation[];
  /** The settlement at its end; undefined when there is none. */
  readonly last: Json;
  /** Once everything is quiet: the settlement is unchanged, and its key still has the same answer. */
  readonly checkAgain: () => Promise<readonly Violation[]>;
};

const CORRIDOR = 'US-JM';
const DETAIL_LENGTH_MAX = 600;

/** Plays one scenario to its end. What goes wrong is in the result, never thrown. */
export async function playScenario(
  deps: CourseDeps,
  tenant: Tenant,
  index: number,
  scenario: Scenario,
): Promise<PlayedScenario> {
  const violations: Violation[] = [];
  // Each read sees a broken rule again: it is reported once.
  const report: Report = (rule, detail) => {
    if (!violations.some((known) => known.rule === rule))
      violations.push({ scenario: index, rule, detail: detail.slice(0, DETAIL_LENGTH_MAX) });
  };
  const guarded = async (run: () => Promise<void>): Promise<void> => {
    await run().catch((error: unknown) => report('every request is answered', String(error)));
  };
  let last: Json;
  let check = async (): Promise<void> => undefined;
  await guarded(async () => {
    const recipientId = await createRecipient(deps.http, tenant, NAMES[scenario.name]);
    if (scenario.verified && !(await decide(deps.http, tenant, recipientId, 'verified')))
      throw new Error('the recipient could not be verified');
    const accepted = await settle(deps.http, tenant, scenario, recipientId, report);
    if (accepted === undefined) return;
    const course = createCourse(deps, tenant, scenario, { settlementId: accepted.settlementId, recipientId, report });
    for (const act of scenario.acts) {
      await delay(act.pauseMs);
      await course.act(act);
    }
    last = await course.finish();
    check = async () => {
      await course.requireUnchanged(last);
      await accepted.requireSameAnswer();
    };
  });
  return {
    index,
    scenario,
    tenant,
    violations,
    last,
    checkAgain: async () => {
      const before = violations.length;
      await guarded(check);
      return violations.slice(before);
    },
  };
}

type Accepted = {
  readonly settlementId: string;
  /** The key is answered with the very same bytes, however late. */
  readonly requireSameAnswer: () => Promise<void>;
};

/**
 * Sends every copy of the request, and the same key with other bytes if the scenario says so, at the same moment. One
 * body wins; every request with the other one is refused.
 *
 * @returns undefined when nothing was accepted, which is a violation
 */
async function settle(
  http: HttpClient,
  tenant: Tenant,
  scenario: Scenario,
  recipientId: string,
  report: Report,
): Promise<Accepted | undefined> {
  const { path, body } = await settleCommand(http, tenant, scenario, recipientId);
  const headers = authorize(tenant, { 'idempotency-key': crypto.randomUUID() });
  const send = (sent: object) => http.untilAnswered({ method: 'POST', path, headers, body: sent });
  const bodies = [body, ...(scenario.reusesKey ? [{ ...body, reference: 'other bytes' }] : [])];
  const groups = await Promise.all(
    bodies.map(async (sent, place) => ({
      sent,
      answers: await Promise.all(Array.from({ length: place === 0 ? scenario.copies : 1 }, () => send(sent))),
    })),
  );
  const wanted = scenario.payment === 'internal' ? 201 : 202;
  const winners = groups.filter(({ answers }) => answers.some(({ status }) => status === wanted));
  const [winner] = winners;
  const [first] = winner?.answers ?? [];
  if (winner === undefined || first === undefined || winners.length > 1) {
    report('one key, one command', `${winners.length} bodies were accepted: ${showAnswers(groups)}`);
    return undefined;
  }
  if (winner.answers.some(({ status, text }) => status !== wanted || text !== first.text))
    report('one key, one answer', `copies of one request were answered differently: ${showAnswers(groups)}`);
  const losers = groups.filter((group) => group !== winner).flatMap(({ answers }) => answers);
  if (losers.some(({ status, body: refusal }) => status !== 409 || refusal.code !== 'idempotency_key_reused'))
    report('one key, one command', `other bytes were not refused: ${showAnswers(groups)}`);
  return {
    settlementId: first.body.settlement_id,
    requireSameAnswer: async () => {
      const again = await send(winner.sent);
      if (again.text !== first.text || again.headers.get('idempotency-replayed') !== 'true')
        report('one key, one answer', `a late copy was answered ${again.status}: ${again.text}`);
    },
  };
}

const showAnswers = (groups: readonly { readonly answers: readonly Answer[] }[]): string =>
  groups.flatMap(({ answers }) => answers.map(({ status, text }) => `${status} ${text}`)).join(' | ');

async function settleCommand(http: HttpClient, tenant: Tenant, scenario: Scenario, recipientId: string) {
  const body = {
    corridor: CORRIDOR,
    amount: decimal(scenario.amountMinor),
    recipient_id: recipientId,
    payout_rail: 'bank_transfer',
  };
  switch (scenario.payment) {
    case 'internal':
      return { path: '/v1/caribbean/settle', body };
    case 'card':
      return { path: '/v2/settle', body: { ...body, payment_method: 'card', card_token: scenario.cardToken } };
    case 'wire':
      return { path: '/v2/settle', body: { ...body, payment_method: 'wire' } };
    case 'ach': {
      const exchanged = await http.untilAnswered({
        method: 'POST',
        path: '/v2/banklink/exchange',
        headers: authorize(tenant),
        body: { public_token: scenario.achToken },
      });
      const token: string = exchanged.body.access_token;
      return { path: '/v2/settle', body: { ...body, payment_method: 'ach', banklink_account_token: token } };
    }
  }
}
