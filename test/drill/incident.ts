/** Drills in which every process runs, and something else is wrong. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { createClient } from '../../clients/typescript/index.ts';
import { settleByCard, signUp } from '../../scripts/sandbox/partner.ts';
import { type Drill, DrillError, OPERATORS, type Scene } from './scene.ts';
import { until } from './world.ts';

const LOG_TIMEOUT_MS = 30_000;
const METRIC_TIMEOUT_MS = 30_000;
const [ANA, BO] = OPERATORS;

/** Every transition of such a settlement fails in the database, as on a full disk. */
const POISON = `
  CREATE FUNCTION refuse_poisoned() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN RAISE EXCEPTION 'poisoned' USING ERRCODE = 'disk_full'; END $$;
  CREATE TRIGGER poisoned BEFORE UPDATE OF status ON settlements FOR EACH ROW
    WHEN (OLD.reference = 'poisoned') EXECUTE FUNCTION refuse_poisoned()`;
const ANTIDOTE = 'DROP TRIGGER poisoned ON settlements; DROP FUNCTION refuse_poisoned()';

/** Moves a settlement's own clock, as the sandbox can; by default to the end of its wait. */
export const advance = ({ world: { partner } }: Scene, settlementId: string, by?: string) =>
  partner.client.sandbox.advance(settlementId, by === undefined ? {} : { by });

const poisoned: Drill = {
  name: 'poison',
  title: 'A settlement is poisoned',
  run: async (scene, runbook) => {
    const { world } = scene;
    await world.sql(POISON);
    scene.did('Every transition of one settlement fails in the database, as on a full disk.');
    try {
      const settlement = await scene.requests({ reference: 'poisoned' });
      const healthy = await scene.requests();
      await scene.settles(healthy);
      await advance(scene, settlement, 'PT10M');
      scene.did('Another one is not held up. Ten minutes pass on the clock of the poisoned one.');
      await scene.fires('SettlementsStandStill');
      const row = runbook.alert('SettlementsStandStill');
      scene.reads('`SettlementsStandStill`', row, 'a settlement should move at once, and no process moves it');
      await scene.types(row, 'stuck', {}, new RegExp(`${settlement} accepted`));
      await scene.types(
        row,
        'show <settlement id>',
        { 'settlement id': settlement },
        /The step admitSettlement fails .*: dependency:53100/,
      );
      scene.reads('`SettlementsStandStill`', row, "the worker's log says why (`an activity failed`");
      const line = await until('line of the failed step in the log', LOG_TIMEOUT_MS, async () =>
        world.log('worker', settlement, 'an activity failed').at(-1),
      );
      const code = /"code":"(\w+)"/.exec(line)?.[1];
      if (code !== '53100') throw new DrillError(`The line does not have the code of a full disk: ${line}`);
      scene.did(`The worker's log has for it: \`an activity failed\`, SQLSTATE \`${code}\` (disk full).`);
    } finally {
      await world.sql(ANTIDOTE);
    }
    scene.did('The cause is mended.');
    const [settlement = ''] = (
      await world.sql(`SELECT settlement_id FROM settlements WHERE reference = 'poisoned'`)
    ).map(({ settlement_id }) => String(settlement_id));
    const waits = runbook.section('Why does a settlement wait?');
    await scene.types(
      waits,
      'redispatch <settlement id> --operator <name> --note <why> --yes',
      { 'settlement id': settlement, name: ANA, why: 'the disk has room again' },
      /will be (started|signalled)|started or signalled/,
    );
    await scene.settles(settlement);
    await scene.ends('SettlementsStandStill');
  },
};

const stuckProvider: Drill = {
  name: 'provider',
  title: 'A provider does not answer',
  run: async (scene, runbook) => {
    const settlement = await scene.requests({}, 'PAYOUT PENDING');
    await scene.stands(settlement, 'paying_out');
    scene.did('A payout was sent, and the rail does not answer.');
    await advance(scene, settlement);
    await scene.stands(settlement, 'needs_review');
    scene.did('Three days pass on its clock: it is `needs_review`.');
    await scene.fires('ReviewWaits');
    const row = runbook.alert('ReviewWaits');
    scene.reads('`ReviewWaits`', row, 'an operator must decide about a payout');
    const waits = runbook.section('Why does a settlement wait?');
    await scene.types(
      waits,
      'waiting',
      {},
      new RegExp(`${settlement} needs_review .*waits for an operator: resolve it as paid or refused`),
    );
    scene.reads('`operator review`', waits, 'ask the rail, then run `ops resolve`');
    await scene.types(
      waits,
      'resolve <settlement id> paid|refused --operator <name> --note <how it is known> --yes',
      { 'settlement id': settlement, 'paid|refused': 'paid', name: ANA, 'how it is known': 'the bank confirmed it' },
      /settled/,
    );
    await scene.settles(settlement);
    await scene.ends('ReviewWaits');
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
    const recorded = await scene.types(
      gates,
      'gate record <gate> --corridor <corridor> --evidence <file> --expires <date> --operator <name> --yes',
      values,
      /The gate is closed until 2 operators approve/,
    );
    const evidence = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(recorded)?.[0] ?? '';
    const refused = await scene.refusal((client) => settleByCard({ client }));
    if (refused.code !== 'launch_gates_closed') throw new DrillError(`A settlement was answered ${refused.message}`);
    scene.did('A settlement on US-JM is refused (503 `launch_gates_closed`).');
    await scene.fires('GateRefusals');
    const row = runbook.alert('GateRefusals');
    scene.reads('`GateRefusals`', row, 'act only if the gate should be open');
    await scene.types(
      row,
      'gate explain <corridor>',
      { corridor: 'US-JM' },
      /ledger_reconciliation: closed, not_approved: .* has 0 of 2 approvals/,
    );
    for (const name of [ANA, BO])
      await scene.types(
        gates,
        'gate approve <evidence id> --operator <name> --note <what was examined> --yes',
        { 'evidence id': evidence, name, 'what was examined': 'the sums of all accounts' },
        /approved/,
      );
    await scene.types(row, 'gate explain <corridor>', { corridor: 'US-JM' }, /ledger_reconciliation: open/);
    await scene.settles(await scene.requests());
  },
};

const leakedKey: Drill = {
  name: 'key',
  title: 'An API key leaks',
  run: async (scene, runbook) => {
    const { prometheus, log, stack } = scene.world;
    const { baseUrl } = stack;
    const partner = await signUp({ baseUrl });
    const keys = runbook.section('A leaked API key');
    await partner.client.organizations.get(partner.orgId);
    scene.did('Somebody else uses the only key of a partner.');
    const org = { 'organization id': partner.orgId };
    const listed = await scene.types(keys, 'list keys --org <organization id>', org, /full.*last used/);
    const keyId = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(listed)?.[0] ?? '';
    scene.reads('"A leaked API key"', keys, 'from which networks');
    const line = log('api', keyId, '"client"').at(-1);
    if (line === undefined) throw new DrillError(`No line of the API's log has the key ${keyId} and its client.`);
    scene.did(`The API's log has its uses: \`"client":"${/"client":"([^"]+)"/.exec(line)?.[1]}"\`.`);
    const act = 'org reissue-key <organization id> --operator <name> --note <why> --yes';
    const why = 'its only key leaked';
    await scene.types(keys, act, { ...org, name: ANA, why }, /second|another/i);
    const given = await scene.types(keys, act, { ...org, name: BO, why }, /sk_/);
    const fresh = /sk_\w+/.exec(given)?.[0] ?? '';
    scene.reads('"A leaked API key"', keys, 'DELETE /v1/orgs/keys/<key id>');
    await createClient({ baseUrl, apiKey: fresh }).apiKeys.revoke(keyId);
    scene.did('The partner revokes the leaked key with the new one (200).');
    const refused = await scene.refusal((client) => client.organizations.get(partner.orgId), partner.apiKey);
    if (refused.status !== 401) throw new DrillError(`The revoked key was answered ${refused.status}.`);
    const isCounted = `increase(settlement_http_refusals_total{code="credential_invalid"}[5m]) > 0`;
    await until('metric of the refusal', METRIC_TIMEOUT_MS, async () => (await prometheus.query(isCounted)).length > 0);
    scene.did('The leaked key gets 401, and `settlement_http_refusals_total{code="credential_invalid"}` counts it.');
  },
};

export const INCIDENTS: readonly Drill[] = [poisoned, stuckProvider, closedGate, leakedKey];
