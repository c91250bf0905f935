/**
 * What goes wrong, one after the other, and an operator who has only the table "Causes and remedies" of
 * docs/operations.md: at most two commands show the cause, and at most two are the remedy. Each command is typed as the
 * table has it.
 */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { settlementIdOf } from '../../db/id.ts';
import { migrate } from '../../db/migrate.ts';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { EXIT } from '../../ops/command-line/program.ts';
import { cardSettlementBody, recipientBody, settleByCard, signUp } from '../../scripts/sandbox/partner.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { TASK_QUEUE } from '../../workflows/contract.ts';
import { until } from '../support/wait.ts';
import { type Cell, type Remedy, typed } from './runbook.ts';
import { type Act, DrillError, mask, OPERATORS, type Scene, type Troubles } from './scene.ts';
import { onTemporal, preload } from './world.ts';
import { WRONG_ANSWERS } from './wrong-answer.ts';

const COMMANDS_MAX = 2;
const SHOWN_LENGTH = 140;
const IN_TIME = { timeoutMs: 60_000 };
const [ANA, BO] = OPERATORS;
const SLOWLY = { timeoutMs: 120_000 };
const EVENTS = 100_000;

export type Played = {
  readonly wrong: string;
  readonly cause: string;
  readonly causeShown: string;
  readonly remedy: string;
  readonly remedyShown: string;
};

const TROUBLES: Troubles = {
  'A run was terminated': async (scene) => {
    const settlement = await scene.settleUnpaid();
    await onTemporal(scene.world, ({ workflow }) => workflow.getHandle(settlementWorkflowId(settlement)).terminate());
    const values = { 'settlement id': settlement };
    return { values, cause: /It has no run|run +(none|terminated)/, remedy: /will be started or signalled/ };
  },
  'PostgreSQL only reads': async (scene) => {
    const { sql, stack } = scene.world;
    const [{ name } = {}] = await sql('SELECT current_database() AS name');
    const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}' AND pid <> pg_backend_pid()`;
    await sql(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    await sql(end).catch(() => undefined);
    const state = async (wanted: string) => {
      const answer = await fetch(`${stack.baseUrl}/health/ready`).catch(() => undefined);
      const found = answer ? ((await answer.json()) as Record<string, unknown>) : {};
      return found['postgres'] === wanted && `/health/ready: ${found['status']}, postgres ${wanted}`;
    };
    return {
      cause: () => until('read-only answer', () => state('read_only'), IN_TIME),
      remedy: async () => {
        await sql(`SET transaction_read_only = off; ALTER DATABASE ${name} RESET default_transaction_read_only`);
        return await until('writable answer', () => state('up'), IN_TIME);
      },
    };
  },
  'PostgreSQL has too many connections': async (scene) => {
    const taken: pg.Client[] = [];
    for (let isFull = false; !isFull; ) {
      const client = new pg.Client({ connectionString: scene.world.stack.databaseUrl });
      client.on('error', () => undefined);
      await client.connect().then(
        () => taken.push(client),
        () => {
          isFull = true;
        },
      );
    }
    return {
      cause: /PostgreSQL does not answer: .*(too many|reserved)/,
      remedy: async () => {
        await Promise.all(taken.map((client) => client.end()));
        await until('answer', async () => (await scene.world.ops(['stuck'])).exitCode === 0, IN_TIME);
        return '`ops stuck` exits with 0';
      },
    };
  },
  '100 000 events wait for a dead endpoint': async (scene) => {
    const { sql, stack } = scene.world;
    const partner = await signUp({ baseUrl: stack.baseUrl });
    const url = `http://127.0.0.1:${await freePort()}/dead`;
    const { webhook_id: webhook } = await partner.client.webhooks.create({ url, event_types: ['*'] });
    await settleByCard(partner);
    const row = `FROM webhook_deliveries WHERE webhook_id = '${webhook}'`;
    await until('failed attempt', async () => (await sql(`SELECT 1 ${row} AND attempt_count > 0`)).length > 0, IN_TIME);
    for (const table of ['events', 'webhook_deliveries']) {
      const own = table === 'events' ? `event_id IN (SELECT event_id ${row})` : `webhook_id = '${webhook}'`;
      await sql(`INSERT INTO ${table} SELECT copy.* FROM (SELECT * FROM ${table} WHERE ${own} LIMIT 1) one,
        generate_series(1, ${EVENTS}) n, jsonb_populate_record(NULL::${table}, to_jsonb(one) || jsonb_build_object(
          'event_id', one.event_id || '-' || n, 'delivery_id', md5(n::text), 'sequence', 1000 + n,
          'lane_key', NULL, 'claimed_by', 0, 'next_attempt_at', now() + interval '1 day')) copy`);
    }
    return { values: { 'webhook id': webhook }, cause: /Its endpoint fails/, remedy: /is disabled: no request/ };
  },
  'A subscription must stop now': async ({ world: { stack } }) => {
    const partner = await signUp({ baseUrl: stack.baseUrl });
    const url = `http://127.0.0.1:${await freePort()}/hook`;
    const { webhook_id: webhook } = await partner.client.webhooks.create({ url, event_types: ['*'] });
    const values = { 'organization id': partner.orgId, 'webhook id': webhook };
    return { values, cause: new RegExp(`${webhook}, status enabled`), remedy: /is disabled: no request/ };
  },
  'A key leaked': async ({ world: { stack, sql } }) => {
    const partner = await signUp({ baseUrl: stack.baseUrl });
    await partner.client.organizations.get(partner.orgId);
    const [{ key_id: key } = {}] = await sql('SELECT key_id FROM api_keys WHERE org_id = $1', [partner.orgId]);
    const values = { 'organization id': partner.orgId, key: String(key) };
    return { values, cause: /First key.*last used from/, remedy: /is revoked: First key/ };
  },
  'A key is lost': async ({ world: { stack } }) => {
    const partner = await signUp({ baseUrl: stack.baseUrl });
    const values = { 'organization id': partner.orgId };
    return { values, cause: /two operators give it a new one/, remedy: /is a new key of scope full/ };
  },
  'Evidence of a launch gate is wrong': async ({ world: { stack, ops } }) => {
    const file = path.join(stack.folder, 'rail.pdf');
    writeFileSync(file, 'the admission of another rail');
    const args = ['--corridor', 'US-HT', '--evidence', file, '--expires', '2099-01-31', '--operator', ANA, '--yes'];
    const { text } = await ops(['gate', 'record', 'rail_admission', ...args]);
    const evidence = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(text)?.[0] ?? '';
    const values = { corridor: 'US-HT', 'evidence id': evidence };
    return { values, cause: new RegExp(`rail_admission: closed.*${evidence}`), remedy: /revoked/ };
  },
  'A review was resolved wrongly': async (scene) => {
    const settlement = await scene.settleUnanswered();
    const args = ['--operator', ANA, '--note', 'the rail said so by phone', '--yes'];
    await scene.world.ops(['resolve', settlement, 'paid', ...args]);
    await scene.awaitStatus(settlement, 'settled');
    const values = { 'settlement id': settlement, id: settlement };
    const remedy = async () => 'what is agreed stays: the service changes nothing';
    return { values, cause: /settlement_resolve.*operator ana|operator ana.*by phone/, remedy };
  },
  'A review has waited for three days': async (scene) => {
    const settlement = await scene.settleUnanswered();
    const values = {
      'settlement id': settlement,
      outcome: 'refused',
      'how it is known': 'the bank sent it back',
    };
    return { values, cause: new RegExp(`${settlement} needs_review`), remedy: /is failed/ };
  },
  '"Paid twice", by a reference': async (scene) => {
    const reference = `INV-${Date.now()}`;
    const first = await scene.settle({ reference });
    await scene.awaitStatus(first, 'settled');
    const second = await scene.settleUnpaid({ reference });
    const values = { reference, 'settlement id': second };
    return { values, cause: /settlements with this reference: 2/, remedy: /is canceled/ };
  },
  'All about one recipient': async ({ world: { partner } }) => {
    const value = `C-${Date.now()}`;
    const body = { ...recipientBody(), metadata: { crm: value } };
    const { recipient_id: recipient } = await partner.client.recipients.create(body);
    const values = { 'metadata value': value, 'recipient id': recipient };
    return { values, cause: new RegExp(`recipient ${recipient}`), remedy: /Marcia Brown/ };
  },
  'The database was restored': async (scene) => {
    const { partner } = scene.world;
    const key = `lost-${Date.now()}-of-the-partner`;
    const settlementId = settlementIdOf(partner.orgId, key);
    const args = [{ settlementId, orgId: partner.orgId }];
    const options = { workflowId: settlementWorkflowId(settlementId), taskQueue: TASK_QUEUE, args };
    await onTemporal(scene.world, ({ workflow }) => workflow.start('settlement', options));
    const listed = async () => (await scene.world.ops(['reconcile'])).text.includes(settlementId);
    await until('run without a row', listed, IN_TIME);
    const again = async () => {
      const { recipient_id: recipientId } = await partner.client.recipients.create(recipientBody());
      const body = cardSettlementBody(recipientId);
      const headers = { 'idempotency-key': key };
      await partner.client.request('POST', '/v2/settle', { headers, body });
    };
    return {
      cause: new RegExp(settlementId),
      before: again,
      remedy: /settlements: \d+ will be started or signalled/,
      after: () => scene.awaitStatus(settlementId, 'settled'),
    };
  },
  'A migration waits for a lock': async ({ world: { stack, sql } }) => {
    const holder = new pg.Client({ connectionString: stack.migrationUrl, application_name: 'somebody' });
    holder.on('error', () => undefined);
    await holder.connect();
    // Each migration ends with what the service may do with the tables.
    await holder.query('BEGIN; GRANT SELECT ON recipients TO pg_monitor');
    const said: string[] = [];
    const migrated = migrate(stack, { onLocked: (sentence) => void said.push(sentence) });
    const pidOf = (sentence: string): string => /pg_terminate_backend\((\d+)\)/.exec(sentence)?.[1] ?? fail(sentence);
    return {
      cause: () => until('sentence', async () => said.at(-1) ?? false, IN_TIME),
      remedy: async () => {
        await sql(`SELECT pg_terminate_backend(${pidOf(said[0] ?? '')})`);
        await migrated;
        return 'the database is migrated';
      },
    };
  },
  'A tenant is noisy': async ({ world: { stack }, refusal }) => {
    const { client, orgId, apiKey } = await signUp({ baseUrl: stack.baseUrl });
    for (let n = 0; n < 20; n += 1) await client.recipients.create(recipientBody());
    const values = { 'organization id': orgId, number: '100' };
    const after = async () => {
      const { code } = await refusal((partner) => partner.recipients.create(recipientBody()), apiKey);
      const { limits } = await client.organizations.me();
      if (code !== 'organization_suspended' || limits.requests_per_minute !== 100)
        fail(`The next write was answered ${code}, with ${JSON.stringify(limits)}.`);
    };
    return { values, cause: /last used at/, remedy: /is suspended/, after };
  },
  'A process leaks memory': async (scene) => {
    const { stack, prometheus } = scene.world;
    await stack.kill('api');
    await stack.start('api', {
      NODE_OPTIONS: `--max-old-space-size=400 --max-semi-space-size=1 ${preload('leak.mjs')}`,
    });
    const fires = async () => (await prometheus.alerts('firing')).includes('MemoryRunsOut');
    return {
      cause: () => until('alert MemoryRunsOut', async () => (await fires()) && 'MemoryRunsOut fires', SLOWLY),
      remedy: async () => {
        await stack.kill('api');
        await stack.start('api');
        await stack.untilReady();
        return await until('end of the alert', async () => !(await fires()) && 'MemoryRunsOut has ended', IN_TIME);
      },
    };
  },
  ...WRONG_ANSWERS,
};

export const TROUBLE_NAMES = Object.keys(TROUBLES);

/** @throws Error when the commands do not show the cause, or the remedy does not help */
export async function playTrouble(scene: Scene, { wrong, cause, remedy }: Remedy): Promise<Played> {
  const trouble = await (TROUBLES[wrong] ?? fail(`No drill plays "${wrong}".`))(scene);
  const values = { name: ANA, why: 'a drill', ...trouble.values };
  const causeShown = await playCell(scene, cause, trouble.cause, values);
  await trouble.before?.();
  const remedyShown = await playCell(scene, remedy, trouble.remedy, values, EXIT.done);
  await trouble.after?.();
  return { wrong, cause: cause.words, causeShown, remedy: remedy.words, remedyShown };
}

const fail = (why: string): never => {
  throw new DrillError(why);
};

/** @param exitCode what each command must exit with; undefined: whatever, as where nothing answers */
async function playCell(
  { world }: Scene,
  { words, commands }: Cell,
  shows: RegExp | Act,
  values: Readonly<Record<string, string>>,
  exitCode?: number,
): Promise<string> {
  if (!(shows instanceof RegExp)) {
    const texts: string[] = [];
    for (const command of commands) texts.push((await world.ops(typed(command, values))).text);
    return shown(await shows(texts.join('\n')));
  }
  const twice = words.includes('by two operators') ? [ANA, BO] : [ANA];
  const runs = commands.flatMap((command) => twice.map((name) => typed(command, { ...values, name })));
  if (runs.length === 0 || runs.length > COMMANDS_MAX) throw new DrillError(`"${words}" has ${runs.length} commands.`);
  let found: string | undefined;
  let text = '';
  for (const args of runs) {
    const ran = await world.ops(args);
    text = ran.text;
    if (exitCode !== undefined && ran.exitCode !== exitCode)
      throw new DrillError(`ops ${args.join(' ')} exited with ${ran.exitCode}:\n${text}`);
    found = text.split('\n').find((line) => shows.test(line)) ?? found;
  }
  if (found === undefined) throw new DrillError(`${words} did not show ${shows}:\n${text}`);
  return shown(found);
}

const shown = (text: string): string => mask(text.trim()).replaceAll(/ +/g, ' ').slice(0, SHOWN_LENGTH);
