/** Drills in which every process runs, and something else is wrong. */
import { until } from '../support/wait.ts';
import { type Drill, DrillError, OPERATORS } from './scene.ts';

const LOG_TIMEOUT_MS = 30_000;
const [ANA] = OPERATORS;

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

export const INCIDENTS: readonly Drill[] = [poisoned];
