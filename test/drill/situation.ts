/**
 * Seeded situations. An operator who has only docs/operations.md, "What to look at first", finds the cause by at most
 * two commands: the one of the line, and the one that its output names.
 */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { freePort } from '../../scripts/stack/port.ts';
import { cardprocBody, cardprocSignature, PROVIDER_SECRETS } from '../support/provider-event.ts';
import { until } from '../support/wait.ts';
import { type FirstLook, typed } from './runbook.ts';
import { DrillError, mask, OPERATORS, type Scene } from './scene.ts';

const COMMANDS_MAX = 2;
const SEEDED = { timeoutMs: 60_000 };
const SHOWN_LENGTH = 160;
const [ANA] = OPERATORS;

type Situation = {
  readonly values: Readonly<Record<string, string>>;
  /** What the operator must read. */
  readonly cause: RegExp;
  readonly restore?: () => Promise<void>;
};

export type Finding = FirstLook & {
  /** As they were typed. */
  readonly commands: readonly string[];
  /** The line that says the cause. */
  readonly cause: string;
};

/** By what somebody says: each makes it so. */
const SITUATIONS: Readonly<Record<string, (scene: Scene) => Promise<Situation>>> = {
  'A settlement does not go on': async (scene) => ({
    values: { 'settlement id': await scene.settleUnpaid() },
    cause: /waits for +card evidence/,
  }),
  'A large settlement is held': async (scene) => {
    const settlement = await scene.settle({ amount: '1500.00' });
    await scene.awaitStatus(settlement, 'compliance_hold');
    return { values: { 'settlement id': settlement }, cause: /until the partner has it verified/ };
  },
  'A settlement failed': async (scene) => {
    const settlement = await scene.settle({}, 'PAYOUT REFUSED');
    await scene.awaitStatus(settlement, 'failed');
    return { values: { 'settlement id': settlement }, cause: /failure +payout_refused/ };
  },
  'The payer has paid, and the money was not counted': async ({ world: { stack } }) => {
    const event = cardprocBody('', { object: 'payment_intent', metadata: {} });
    const body = JSON.stringify(event);
    const headers = { 'content-type': 'application/json', ...cardprocSignature(body, PROVIDER_SECRETS.cardproc) };
    await fetch(`${stack.baseUrl}/v2/webhooks/cardproc`, { method: 'POST', headers, body });
    return { values: { 'provider event id': event.id }, cause: /It was stored and not applied: it names no object/ };
  },
  'What came of this request?': async (scene) => {
    const settlement = await scene.settleUnpaid();
    await scene.world.partner.client.settlements.cancel(settlement);
    const [row] = await scene.world.sql('SELECT request_id FROM settlements WHERE settlement_id = $1', [settlement]);
    return { values: { 'request id': String(row?.['request_id']) }, cause: /status +canceled/ };
  },
  'A subscriber gets no events': async (scene) => {
    const { partner } = scene.world;
    // Nobody listens there.
    const url = `http://127.0.0.1:${await freePort()}/hook`;
    const { webhook_id: webhook } = await partner.client.webhooks.create({ url, event_types: ['*'] });
    await scene.settleUnpaid();
    const failing = 'SELECT 1 FROM webhooks WHERE webhook_id = $1 AND failing_since IS NOT NULL';
    await until('failed delivery', async () => (await scene.world.sql(failing, [webhook])).length > 0, SEEDED);
    return {
      values: { 'webhook id': webhook },
      cause: /Its endpoint fails/,
      restore: () => partner.client.webhooks.delete(webhook),
    };
  },
  'Requests are refused because a launch gate is closed': async ({ world: { stack, ops } }) => {
    const file = path.join(stack.folder, 'dispute.pdf');
    writeFileSync(file, 'how disputes are booked');
    const args = ['--corridor', 'CA-JM', '--evidence', file, '--expires', '2099-01-31', '--operator', ANA, '--yes'];
    await ops(['gate', 'record', 'dispute_accounting', ...args]);
    return {
      values: { corridor: 'CA-JM' },
      cause: /dispute_accounting: closed, not_approved: .* has 0 of 2 approvals/,
    };
  },
  'A partner has lost its key': async ({ world: { partner } }) => ({
    values: { 'organization id': partner.orgId },
    cause: /two operators give it a new one/,
  }),
  // What is committed waits: Temporal does not answer.
  'Nothing goes on': async (scene) => {
    const { stack, sql } = scene.world;
    stack.pause('temporal');
    const settlement = await scene.settle();
    const row = "SELECT 1 FROM outbox WHERE kind = 'settlement' AND object_id = $1 AND last_error IS NOT NULL";
    await until('failed dispatch', async () => (await sql(row, [settlement])).length > 0, SEEDED);
    await sql(`UPDATE outbox SET created_at = created_at - interval '2 minutes' WHERE object_id = $1`, [settlement]);
    return {
      values: {},
      cause: new RegExp(`settlement ${settlement}: since .*, last error \\w+`),
      restore: async () => {
        stack.resume('temporal');
        await scene.awaitStatus(settlement, 'settled');
      },
    };
  },
  'What must be decided now?': async (scene) => {
    const settlement = await scene.settleUnanswered();
    return { values: {}, cause: new RegExp(`${settlement} needs_review .*waits for an operator: resolve it`) };
  },
  'Who did this?': async (scene) => {
    const settlement = await scene.settleUnpaid();
    const note = 'the partner asked by phone';
    const { text } = await scene.world.ops(['cancel', settlement, '--operator', ANA, '--note', note, '--yes']);
    await scene.awaitStatus(settlement, 'canceled').catch(() => Promise.reject(new DrillError(text)));
    return { values: { id: settlement }, cause: /action settlement_cancel, operator ana|settlement_cancel.*ana/ };
  },
};

export const SYMPTOMS = Object.keys(SITUATIONS);

/** @throws DrillError when two commands did not show the cause */
export async function play(scene: Scene, look: FirstLook): Promise<Finding> {
  const seed = SITUATIONS[look.symptom];
  if (!seed) throw new DrillError(`docs/operations.md has "${look.symptom}", for which there is no situation.`);
  const { values, cause, restore } = await seed(scene);
  const commands: string[] = [];
  try {
    let args: readonly string[] | undefined = typed(look.command, values);
    let text = '';
    while (args !== undefined && commands.length < COMMANDS_MAX) {
      ({ text } = await scene.world.ops(args));
      commands.push(`ops ${mask(args.join(' '))}`);
      const found = text.split('\n').find((line) => cause.test(line));
      if (found !== undefined)
        return { ...look, commands, cause: mask(found.trim()).replaceAll(/ +/g, ' ').slice(0, SHOWN_LENGTH) };
      // The next command that the output names.
      args = /npm run ops -- (show \S+)/.exec(text)?.[1]?.split(' ');
    }
    throw new DrillError(`"${look.symptom}": ${commands.join(', ')} did not show ${cause}:\n${text}`);
  } finally {
    await restore?.();
  }
}
