/** Drills in which a part of the stack is down. Nothing that was accepted may be lost. */
import { setTimeout as delay } from 'node:timers/promises';
import { cardSettlementBody, recipientBody } from '../../scripts/sandbox/partner.ts';
import { type Drill, DrillError } from './scene.ts';

/** The API notices a lost connection at its next request. */
const NOTICE_MS = 1_000;

export const OUTAGES: readonly Drill[] = [
  {
    name: 'worker',
    title: 'A worker is down',
    run: async (scene, runbook) => {
      const { stack } = scene.world;
      await stack.kill('worker');
      scene.note('The worker is killed.');
      const settlement = await scene.settle();
      scene.note('A settlement is accepted (202).');
      await scene.awaitAlert('WorkerDown');
      scene.requireText('`WorkerDown`', runbook.alert('WorkerDown'), 'accepted settlements wait; nothing is lost');
      const waits = runbook.section('Why does a settlement wait?');
      await scene.runCommand(waits, 'show <id>', { id: settlement }, /None while a worker runs/);
      scene.requireText(
        '`WorkerDown`',
        runbook.alert('WorkerDown'),
        'start a worker; it continues where the last one stopped',
      );
      await stack.start('worker');
      scene.note('A worker is started.');
      await scene.awaitSettled(settlement);
      await scene.awaitAlertEnd('WorkerDown');
    },
  },
  {
    name: 'temporal',
    title: 'Temporal is down',
    run: async (scene, runbook) => {
      const { stack } = scene.world;
      await stack.kill('temporal');
      scene.note('Temporal is killed.');
      const settlement = await scene.settle();
      scene.note('A settlement is accepted (202).');
      await scene.awaitAlert('TemporalDown');
      const down = runbook.alert('TemporalDown');
      scene.requireText('`TemporalDown`', down, 'requests are accepted, and nothing is lost');
      await scene.runCommand(down, 'stuck', {}, /Temporal does not answer/);
      await scene.awaitAlert('OutboxStuck');
      const row = runbook.alert('OutboxStuck');
      scene.requireText('`OutboxStuck`', row, 'committed work does not reach Temporal');
      await scene.runCommand(row, 'stuck', {}, new RegExp(`settlement ${settlement}: .* last error \\w+`));
      const waits = runbook.section('Why does a settlement wait?');
      await scene.runCommand(
        waits,
        'show <id>',
        { id: settlement },
        /Committed work has not reached Temporal .*Is Temporal up/,
      );
      const causes = runbook.section('When Temporal answers wrongly');
      scene.requireText('"When Temporal answers wrongly"', causes, 'bring Temporal back; nothing else');
      await stack.start('temporal');
      scene.note('Temporal is started.');
      await scene.awaitSettled(settlement);
      await scene.awaitAlertEnd('TemporalDown');
      await scene.awaitAlertEnd('OutboxStuck');
    },
  },
  {
    name: 'postgres',
    title: 'PostgreSQL is down',
    run: async (scene, runbook) => {
      const { stack, partner } = scene.world;
      const { recipients, settlements } = partner.client;
      const { recipient_id: recipientId } = await recipients.create(recipientBody());
      const intent = settlements.prepare(cardSettlementBody(recipientId));
      await stack.kill('postgres');
      scene.note('PostgreSQL is killed.');
      await delay(NOTICE_MS);
      const refused = await scene.refusal((client) => client.settlements.create(intent));
      if (refused.status !== 503) throw new DrillError(`A request without PostgreSQL was answered ${refused.status}.`);
      scene.note(`A settlement is refused (503, \`Retry-After: ${refused.retryAfterSeconds}\`).`);
      await scene.awaitAlert('DatabaseDown');
      const row = runbook.alert('DatabaseDown');
      scene.requireText('`DatabaseDown`', row, 'every request gets 503; retries with the same key are safe');
      const commands = runbook.section('Commands');
      await scene.runCommand(`${commands} \`ops stuck\``, 'stuck', {}, /PostgreSQL/, 69);
      scene.requireText('`DatabaseDown`', row, 'bring PostgreSQL back; nothing else');
      await stack.start('postgres');
      scene.note('PostgreSQL is started.');
      const { settlement_id: settlement } = await settlements.create(intent);
      scene.note('The same request with the same key is accepted (202).');
      await scene.awaitSettled(settlement);
      await scene.awaitAlertEnd('DatabaseDown');
    },
  },
];
