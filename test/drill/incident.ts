/** Drills in which every process runs, and something else is wrong. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { settleByCard } from '../../scripts/sandbox/partner.ts';
import { until } from '../support/wait.ts';
import { type Drill, DrillError, OPERATORS } from './scene.ts';

const LOG_TIMEOUT_MS = 30_000;
const [ANA, BO] = OPERATORS;

/** Every transition of such a settlement fails in the database, as on a full disk. */
const POISON = `
  CREATE FUNCTION refuse_poisoned() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN RAISE EXCEPTION 'poisoned' USING ERRCODE = 'disk_full'; END $$;
  CREATE TRIGGER poisoned BEFORE UPDATE OF status ON settlements FOR EACH ROW
    WHEN (OLD.reference = 'poisoned') EXECUTE FUNCTION refuse_poisoned()`;
const ANTIDOTE = 'DROP TRIGGER poisoned ON settlements; DROP FUNCTION refuse_poisoned()';

const poisoned: Drill = {
  name: 'poison',
  title: 'A settlement is poisoned',
  run: async (scene, runbook) => {
    const { world } = scene;
    await world.sql(POISON);
    scene.note('Every transition of one settlement fails in the database, as on a full disk.');
    try {
      const settlement = await scene.settle({ reference: 'poisoned' });
      const healthy = await scene.settle();
      await scene.awaitSettled(healthy);
      await world.partner.client.sandbox.advance(settlement, { by: 'PT10M' });
      scene.note('Another one is not held up. Ten minutes pass on the clock of the poisoned one.');
      await scene.awaitAlert('SettlementsStandStill');
      const row = runbook.alert('SettlementsStandStill');
      scene.requireText('`SettlementsStandStill`', row, 'a settlement should move at once, and no process moves it');
      await scene.runCommand(row, 'stuck', {}, new RegExp(`${settlement} accepted`));
      await scene.runCommand(
        row,
        'show <settlement id>',
        { 'settlement id': settlement },
        /The step admitSettlement fails .*: dependency:53100/,
      );
      scene.requireText('`SettlementsStandStill`', row, "the worker's log says why (`an activity failed`");
      const line = await until(
        'line of the failed step in the log',
        () => world.log('worker', settlement, 'an activity failed').at(-1),
        { timeoutMs: LOG_TIMEOUT_MS },
      );
      const code = /"code":"(\w+)"/.exec(line)?.[1];
      if (code !== '53100') throw new DrillError(`The line does not have the code of a full disk: ${line}`);
      scene.note(`The worker's log has for it: \`an activity failed\`, SQLSTATE \`${code}\` (disk full).`);
    } finally {
      await world.sql(ANTIDOTE);
    }
    scene.note('The cause is fixed.');
    const [settlement = ''] = (
      await world.sql(`SELECT settlement_id FROM settlements WHERE reference = 'poisoned'`)
    ).map(({ settlement_id }) => String(settlement_id));
    const waits = runbook.section('Why does a settlement wait?');
    await scene.runCommand(
      waits,
      'redispatch <settlement id> --operator <name> --note <why> --yes',
      { 'settlement id': settlement, name: ANA, why: 'the disk has room again' },
      /will be (started|signalled)|started or signalled/,
    );
    await scene.awaitSettled(settlement);
    await scene.awaitAlertEnd('SettlementsStandStill');
  },
};

const stuckProvider: Drill = {
  name: 'provider',
  title: 'A provider does not answer',
  run: async (scene, runbook) => {
    const settlement = await scene.settleUnanswered();
    scene.note('A payout was sent, and the rail does not answer.');
    scene.note('Three days pass on its clock: it is `needs_review`.');
    await scene.awaitAlert('ReviewWaits');
    const row = runbook.alert('ReviewWaits');
    scene.requireText('`ReviewWaits`', row, 'an operator must decide about a payout');
    const waits = runbook.section('Why does a settlement wait?');
    await scene.runCommand(
      waits,
      'waiting',
      {},
      new RegExp(`${settlement} needs_review .*waits for an operator: resolve it as paid or refused`),
    );
    scene.requireText('`operator review`', waits, 'ask the rail, then run `ops resolve`');
    await scene.runCommand(
      waits,
      'resolve <settlement id> paid|refused --operator <name> --note <how it is known> --yes',
      { 'settlement id': settlement, 'paid|refused': 'paid', name: ANA, 'how it is known': 'the bank confirmed it' },
      /settled/,
    );
    await scene.awaitSettled(settlement);
    await scene.awaitAlertEnd('ReviewWaits');
  },
};

const closedGate: Drill = {
  name: 'gate',
  title: 'A launch gate is closed',
  run: async (scene, runbook) => {
    const { stack } = scene.world;
    const gates = runbook.section('Launch gates');
    const file = path.join(stack.folder, 'reconciliation.pdf');
    writeFileSync(file, 'the reconciliation of the ledger');
    const values = { gate: 'ledger_reconciliation', corridor: 'US-JM', file, date: '2099-01-31', name: ANA };
    const recorded = await scene.runCommand(
      gates,
      'gate record <gate> --corridor <corridor> --evidence <file> --expires <date> --operator <name> --yes',
      values,
      /The gate is closed until 2 operators approve/,
    );
    const evidence = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(recorded)?.[0] ?? '';
    const refused = await scene.refusal((client) => settleByCard({ client }));
    if (refused.code !== 'launch_gates_closed') throw new DrillError(`A settlement was answered ${refused.message}`);
    scene.note('A settlement on US-JM is refused (503 `launch_gates_closed`).');
    await scene.awaitAlert('GateRefusals');
    const row = runbook.alert('GateRefusals');
    scene.requireText('`GateRefusals`', row, 'act only if the gate should be open');
    await scene.runCommand(
      row,
      'gate explain <corridor>',
      { corridor: 'US-JM' },
      /ledger_reconciliation: closed, not_approved: .* has 0 of 2 approvals/,
    );
    for (const name of [ANA, BO])
      await scene.runCommand(
        gates,
        'gate approve <evidence id> --operator <name> --note <what was examined> --yes',
        { 'evidence id': evidence, name, 'what was examined': 'the sums of all accounts' },
        /approved/,
      );
    await scene.runCommand(row, 'gate explain <corridor>', { corridor: 'US-JM' }, /ledger_reconciliation: open/);
    await scene.awaitSettled(await scene.settle());
  },
};

export const INCIDENTS: readonly Drill[] = [poisoned, stuckProvider, closedGate];
