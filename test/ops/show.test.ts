/**
 * `show` of each kind of object, as text and as JSON. The golden files have the lines of a real object of each kind,
 * with its ids, digests and times replaced.
 */
import { NamespaceNotFoundError } from '@temporalio/client';
import stringify from 'json-stringify-pretty-compact';
import { expect, vi } from 'vitest';
import { requestResolution } from '../../db/commands/review.ts';
import { settlementIdOf, verificationIdOf } from '../../db/id.ts';
import { OBJECT_KINDS } from '../../db/queries/operator/object-kind.ts';
import { RUNBOOK_SECTIONS } from '../../domain/operator-advice.ts';
import type { SettlementStatus } from '../../domain/settlement/state.ts';
import { temporalFault } from '../../domain/temporal-health.ts';
import { cardprocBody, sendCardproc } from '../support/cardproc.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createOps, temporalSilence } from '../support/ops.ts';
import { createRecipient, jsonOf, settleBody } from '../support/partner.ts';
import { expectUnchanged } from '../support/refusal.ts';
import {
  BY_MANUAL_CARD,
  insertCertifiedSettlement,
  insertSettledSettlement,
  openSettlement,
} from '../support/settlement.ts';
import { readSource } from '../support/source.ts';
import { idverifyBody, openVerification, sendIdverify } from '../support/verification.ts';
import { ping, subscribe, writePings } from '../support/webhook.ts';

const PERSON = {
  name: 'Marcia Secretive',
  email: 'marcia.secretive@mail.example',
  phone: '+18765550123',
  bank_details: { bank_name: 'National Commercial Bank', account_number: '998877665', currency: 'JMD' },
};
const HIDDEN = ['arcia', 'ecretive', '87655501', '99887', 'query-secret', 'dev@acme', 'tok_manual'];

const test = withApi()
  .extend('ops', FILE, ({ api, clock }) =>
    createOps(api.connection.db, { now: clock.now, temporalUi: 'http://ui.example/namespaces/default' }),
  )
  .extend('recipientId', FILE, ({ api, partner }) => createRecipient(api, partner, PERSON))
  .extend('objects', FILE, async ({ api, partner, steps, recipientId }) => {
    const subscription = await subscribe(api, partner, 'http://127.0.0.1:9999/hook?token=query-secret');
    const settlement = await steps.waiting({ ...BY_MANUAL_CARD, recipient_id: recipientId, reference: 'INV-1' });
    await sendCardproc(api, { ...cardprocBody(settlement, { amount_received: 10_000 }), id: 'evt_part' });
    const audit = ['--operator', 'ana', '--note', 'the partner asked', '--yes'];
    await createOps(api.connection.db)('redispatch', settlement, ...audit);
    const { rows } = await api.connection.pool.query('SELECT request_id FROM settlements WHERE settlement_id = $1', [
      settlement,
    ]);
    const { verification_id: verification } = await openVerification(api, partner, recipientId);
    const { delivery_id: delivery } = await ping(api, partner, subscription.webhook_id);
    const since = '2026-11-21T08:00:00.000Z';
    await api.call(partner, 'POST', `/v1/webhooks/${subscription.webhook_id}/replay`, { since });
    const certified = await insertCertifiedSettlement(api.connection.db, partner.orgId);
    const others = [(await api.createCaller()).orgId, (await api.createCaller()).orgId];
    for (const orgId of others) await insertSettledSettlement(api.connection.db, orgId, { reference: 'INV-2' });
    // What a subscription or a simulation needs of Temporal is no part of the golden files.
    await api.connection.pool.query(`DELETE FROM outbox WHERE kind NOT IN ('settlement', 'verification')`);
    return {
      settlement,
      settled: certified.settlement.settlementId,
      verification,
      subscription: subscription.webhook_id,
      delivery,
      organization: partner.orgId,
      recipient: recipientId,
      certificate: certified.certId,
      provider_event: 'evt_part',
      request: rows[0].request_id,
      name: 'INV-2',
    };
  });

/** Ids by the order in which they appear, so that two mentions of one object stay visible. */
function normalize(text: string): string {
  const names = new Map<string, string>();
  const named = (kind: string) => (id: string) => {
    if (!names.has(id)) names.set(id, `<${kind} ${names.size + 1}>`);
    return names.get(id) ?? id;
  };
  return text
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replaceAll(/\((in )?\d+ (d|h|min|s)( ago)?\)/g, '(<age>)')
    .replaceAll(/stl_[a-z2-7]{32}/g, named('settlement'))
    .replaceAll(/CERT-[0-9A-F]{32}/g, named('certificate'))
    .replaceAll(/\b[0-9a-f]{64}\b/g, '<digest>')
    .replaceAll(/(?<![0-9a-f])[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, named('id'))
    .replaceAll(/\bsk_[a-z]+_\w+/g, '<prefix>');
}

const KINDS = [...OBJECT_KINDS, 'settled', 'name'] as const;

test.for(KINDS)(
  'show of a %s prints what the golden file has, changes nothing, and masks personal data',
  async (kind, { api, ops, objects }) => {
    await expectUnchanged(api.connection.pool, async () => {
      const asText = await ops('show', objects[kind]);
      const asJson = await ops('show', objects[kind], '--json');
      expect([asText.exitCode, asJson.exitCode, asText.warned, asJson.warned]).toEqual([0, 0, [], []]);
      const data = JSON.parse(asJson.printed.join('\n'));
      const all = JSON.stringify([asText, asJson]);
      expect(HIDDEN.filter((hidden) => all.includes(hidden))).toEqual([]);
      const [lines, json = ''] = normalize(`${asText.printed.join('\n')}\0${JSON.stringify(data)}`).split('\0');
      const golden = `${lines}\n\n${stringify(JSON.parse(json), { maxLength: 120 })}\n`;
      await expect(golden).toMatchFileSnapshot(`golden/show-${kind}.txt`);
    });
  },
);

test('show takes the id of a workflow for the id of its object', async ({ ops, objects }) => {
  const [first] = (await ops('show', `settlement:${objects.settlement}`)).printed;
  expect(first).toBe(`settlement ${objects.settlement}`);
  const [second] = (await ops('show', `webhook-subscription:${objects.subscription}`)).printed;
  expect(second).toBe(`subscription ${objects.subscription}`);
});

test('show takes a reference, an idempotency key or a metadata value for the one object that has it', async ({
  api,
  partner,
  ops,
  objects,
}) => {
  const recipientId = await createRecipient(api, partner, { metadata: { crm: 'C-77' } });
  const key = { 'idempotency-key': 'key-of-the-partner' };
  const answer = await api.call(partner, 'POST', '/v2/settle', settleBody(recipientId), key);
  for (const [name, object] of [
    ['INV-1', `settlement ${objects.settlement}`],
    ['key-of-the-partner', `settlement ${jsonOf(answer).settlement_id}`],
    ['C-77', `recipient ${recipientId}`],
  ] as const)
    expect((await ops('show', name)).printed[0]).toBe(object);
});

test('show of an idempotency key names what it made, also where that has no report of its own', async ({
  api,
  partner,
  ops,
}) => {
  const key = `wallet-${crypto.randomUUID()}`;
  const signers = [{ address: `0x${'1'.repeat(40)}` }];
  const wallet = { name: 'Payouts', signers, threshold: 1 };
  const created = await api.call(partner, 'POST', '/v1/wallets', wallet, { 'idempotency-key': key });
  const { exitCode, printed } = await ops('show', key);
  expect([created.statusCode, exitCode]).toEqual([201, 0]);
  expect(printed.join('\n')).toContain(jsonOf(created).wallet_id);
});

test('show may take minutes for what no index finds', async ({ newApi }) => {
  const api = await newApi();
  const [partner, ops] = [await api.createCaller(), createOps(api.connection.db)];
  const recipientId = await createRecipient(api, partner, { metadata: { crm: 'C-77' } });
  const { webhook_id: webhookId } = await subscribe(api, partner, 'http://127.0.0.1:9999/hook');
  const { delivery_id: deliveryId } = await ping(api, partner, webhookId);
  const { rows } = await api.owner.pool.query('SELECT request_id FROM webhook_deliveries');
  // They have their rows only for a statement that may take so long.
  for (const table of ['webhook_deliveries', 'recipient_metadata'])
    await api.owner.pool.query(
      `ALTER TABLE ${table} RENAME TO all_${table};
       CREATE VIEW ${table} AS SELECT * FROM all_${table} WHERE current_setting('statement_timeout')::interval >= '10 min';
       GRANT SELECT ON ${table} TO "${new URL(api.databaseUrl).username}"`,
    );
  const shown = async (id: string) => (await ops('show', id)).printed.join('\n');
  expect(await shown(rows[0].request_id)).toContain(deliveryId);
  expect(await shown('C-77')).toContain(recipientId);
});

test('show of a verification in review does not say that it is so since it was opened', async ({
  api,
  partner,
  ops,
}) => {
  const { verification_id: id } = await openVerification(api, partner, await createRecipient(api, partner));
  const shown = async () => JSON.parse((await ops('show', id, '--json')).printed.join(''));
  const { since, created_at: createdAt } = await shown();
  expect(since).toBe(createdAt);
  await sendIdverify(api, idverifyBody(id, { type: 'applicantPending', reviewResult: undefined }));
  expect(await shown()).toMatchObject({ status: 'in_review', since: null });
});

test('show of an event that came before its verification does not say whether it was applied since', async ({
  api,
  partner,
  ops,
}) => {
  const key = { 'idempotency-key': crypto.randomUUID() };
  const event = idverifyBody(verificationIdOf(partner.orgId, key['idempotency-key']));
  expect(jsonOf(await sendIdverify(api, event)).matched).toBe(false);
  await openVerification(api, partner, await createRecipient(api, partner), {}, key);
  expect(jsonOf(await sendIdverify(api, event)).matched).toBe(true);
  const { printed } = await ops('show', event.correlationId);
  expect(printed.join('\n')).not.toMatch(/applied no|stored and not applied/);
  expect(printed.join('\n')).toMatch(/Show the verification/);
});

test('show of an event that came before its settlement says whether it was applied since', async ({
  api,
  partner,
  recipientId,
  ops,
}) => {
  const key = crypto.randomUUID();
  const event = cardprocBody(settlementIdOf(partner.orgId, key));
  await sendCardproc(api, event);
  expect((await ops('show', event.id)).printed.join('\n')).toMatch(/applied no.*have it send the event again/s);
  const body = settleBody(recipientId, BY_MANUAL_CARD);
  await api.call(partner, 'POST', '/v2/settle', body, { 'idempotency-key': key });
  await sendCardproc(api, event);
  expect((await ops('show', event.id)).printed.join('\n')).toMatch(/applied yes.*What it did to the settlement/s);
});

test.for([[], ['stl_none'], ["' OR 1=1 --"]])('show of %j is refused in one line', async (args, { ops }) => {
  const { exitCode, printed, warned } = await ops('show', ...args);
  expect([exitCode, printed, warned.length]).toEqual(args.length === 0 ? [2, [], 2] : [1, [], 1]);
});

test('show does not say that an id is unknown only because it has no report of it, as of a key', async ({
  ops,
  partner,
}) => {
  const { exitCode, warned } = await ops('show', partner.keyId);
  expect([exitCode, warned]).toEqual([
    1,
    [expect.stringMatching(/^No settlement, verification, .*, request has the id/)],
  ]);
});

test('show says that a list may be longer where it has 50 rows of it', async ({ api, partner, ops }) => {
  const { webhook_id: webhookId } = await subscribe(api, partner, 'http://127.0.0.1:9999/');
  const shown = async () => (await ops('show', webhookId)).printed.find((line) => line.startsWith('latest deliveries'));
  await writePings(api, 49, { orgId: partner.orgId, webhookId });
  expect(await shown()).toBe('latest deliveries: 49');
  await writePings(api, 2, { orgId: partner.orgId, webhookId });
  expect(await shown()).toBe('latest deliveries: 50, and there may be more');
});

test('show says what is wrong with Temporal, and still shows what the database knows', async ({ api, objects }) => {
  const ops = createOps(api.connection.db, {
    describeRun: () => Promise.reject(temporalSilence()),
    temporalHealth: async () => temporalFault('tls_failed', 'the certificate has expired'),
  });
  const unreachable = await ops('show', objects.settlement);
  expect(unreachable.printed.join('\n')).toMatch(
    / run +unknown: Temporal cannot be reached by TLS: the certificate has expired\n/,
  );
  const gone = createOps(api.connection.db, { describeRun: () => Promise.reject(new NamespaceNotFoundError('lost')) });
  const { exitCode, printed } = await gone('show', objects.settlement);
  expect(exitCode).toBe(0);
  expect(printed.join('\n')).toMatch(/ run +unknown: Temporal does not have the namespace: lost\n/);
});

test.for<['settlement' | 'verification' | 'subscription', string]>([
  ['settlement', 'It has no run. A sweep starts it again within a minute. To start it now:'],
  ['verification', 'It has no run. A sweep starts it again within a minute. To start all that is open now:'],
  ['subscription', 'It has no run. A sweep starts it again within a minute. To start all that is open now:'],
])('show says what to do about a %s without a run', async ([kind, sentence], { api, objects }) => {
  const ops = createOps(api.connection.db, { describeRun: async () => undefined });
  await api.connection.pool.query('DELETE FROM outbox WHERE object_id = $1', [objects[kind]]);
  const { next } = JSON.parse((await ops('show', objects[kind], '--json')).printed.join(''));
  expect(next).toMatchObject([{ say: sentence, section: 'Lost runs' }]);
});

test('show names a queue without workers only for the runs whose tasks it has', async ({ api, objects }) => {
  const sayOf = async (kind: 'settlement' | 'subscription', taskQueue: string) => {
    const unserved = { taskQueue, promoted: undefined, polling: [] };
    const ops = createOps(api.connection.db, { unservedQueues: async () => [unserved] });
    return JSON.parse((await ops('show', objects[kind], '--json')).printed.join('')).next[0].say;
  };
  expect(await sayOf('settlement', 'settlement')).toMatch(/^Start workers/);
  expect(await sayOf('subscription', 'webhook-delivery')).toMatch(/^Start workers/);
  expect(await sayOf('settlement', 'webhook-delivery')).not.toMatch(/^Start workers/);
  expect(await sayOf('subscription', 'settlement')).not.toMatch(/^Start workers/);
});

test('show says of a subscription without a run that it works while its lane sends what is pending', async ({
  api,
  partner,
}) => {
  const { webhook_id: webhookId } = await subscribe(api, partner, 'http://127.0.0.1:9999/');
  await ping(api, partner, webhookId);
  const ops = createOps(api.connection.db, { describeRun: async () => undefined });
  const { counts, next } = JSON.parse((await ops('show', webhookId, '--json')).printed.join(''));
  expect([counts, next[0].say]).toEqual([[{ status: 'pending', deliveries: 1 }], 'None: it works.']);
});

test('show of an organization has its valid keys and subscriptions, however many have ended since', async ({
  api,
  ops,
}) => {
  const owner = await api.createCaller();
  const kept = await subscribe(api, owner, 'http://127.0.0.1:9999/kept');
  const copy = (table: string, id: string, changed: string): string =>
    `INSERT INTO ${table} SELECT (jsonb_populate_record(row, jsonb_build_object(${changed},
      'created_at', row.created_at - n * interval '1 day'))).*
    FROM ${table} row, generate_series(1, 60) AS n WHERE row.${id} = $1`;
  const rotated = `'key_id', 'key-' || n || row.org_id, 'status', 'rotated', 'key_hash', sha256((n || row.org_id)::bytea)`;
  const deleted = `'webhook_id', 'webhook-' || n || row.org_id, 'secret_sealed', NULL, 'deleted_at', row.created_at`;
  await api.connection.pool.query(copy('api_keys', 'key_id', rotated), [owner.keyId]);
  await api.connection.pool.query(copy('webhooks', 'webhook_id', deleted), [kept.webhook_id]);
  const { keys, subscriptions, next } = JSON.parse((await ops('show', owner.orgId, '--json')).printed.join(''));
  expect(keys.at(-1)).toMatchObject({ key: owner.keyId, status: 'active' });
  expect(subscriptions.at(-1)).toMatchObject({ webhook: kept.webhook_id, status: 'enabled' });
  expect([keys.length, subscriptions.length, next[0].say]).toEqual([
    50,
    50,
    'None. If it has lost its key, two operators give it a new one:',
  ]);
});

test('show has the latest audit entries of an object, which say why it is stopped', async ({ api, ops }) => {
  const { orgId } = await api.createCaller();
  const act = ['--operator', 'ana', '--yes', '--note'];
  for (let n = 0; n < 51; n += 1) await ops('limit', 'set', orgId, 'wallets', String(n), ...act, 'they asked');
  await ops('org', 'suspend', orgId, ...act, 'it floods us');
  const { audit, next } = JSON.parse((await ops('show', orgId, '--json')).printed.join(''));
  expect(next[0].say).toContain('its audit entries say why');
  expect([audit.length, audit.at(-1).note]).toEqual([50, 'it floods us']);
});

test('show of a delivery has its latest attempts, and since when it is as it is', async ({ api, partner, ops }) => {
  const { webhook_id: webhookId } = await subscribe(api, partner, 'http://127.0.0.1:9999/');
  const { delivery_id: deliveryId } = await ping(api, partner, webhookId);
  await api.connection.pool.query(
    `INSERT INTO webhook_attempts (delivery_id, number, at, outcome, duration_ms)
    SELECT $1, n, now() + n * interval '1 minute', 'failed', 1 FROM generate_series(1, 60) AS n`,
    [deliveryId],
  );
  const { since, attempts } = JSON.parse((await ops('show', deliveryId, '--json')).printed.join(''));
  expect([attempts.length, attempts[0].attempt, attempts.at(-1).attempt, since]).toEqual([
    50,
    11,
    60,
    attempts.at(-1).at,
  ]);
});

test('show says that a delivery is late only where stuck lists it: an endpoint that fails delays its own', async ({
  api,
  partner,
  ops,
}) => {
  const { webhook_id: webhookId } = await subscribe(api, partner, 'http://127.0.0.1:9999/');
  const { delivery_id: deliveryId } = await ping(api, partner, webhookId);
  await api.connection.pool.query(
    `UPDATE webhook_deliveries SET next_attempt_at = now() - interval '1 hour' WHERE delivery_id = $1`,
    [deliveryId],
  );
  const shown = async () => {
    const { next } = JSON.parse((await ops('show', deliveryId, '--json')).printed.join(''));
    return [next[0].say.split('.')[0], (await ops('stuck')).printed.join('\n').includes(deliveryId)];
  };
  expect(await shown()).toEqual(['It is late', true]);
  await api.connection.pool.query('UPDATE webhooks SET failing_since = now() WHERE webhook_id = $1', [webhookId]);
  expect(await shown()).toEqual([
    `Its endpoint fails: deliveries to ${webhookId} are attempted one after the other`,
    false,
  ]);
});

test('show says that committed work waits, with the last error', async ({ api, partner, ops }) => {
  const settlementId = await openSettlement(api, partner);
  await api.connection.pool.query(
    `UPDATE outbox SET created_at = now() - interval '2 minutes', last_error = 'ServiceError' WHERE object_id = $1`,
    [settlementId],
  );
  const { next } = JSON.parse((await ops('show', settlementId, '--json')).printed.join(''));
  expect(next[0].say).toContain('(last error: ServiceError)');
});

test.for<[path: readonly SettlementStatus[], command: string]>([
  [[], 'redispatch'],
  [['compliance_hold'], 'show'],
  [['awaiting_funds'], 'cancel'],
  [['awaiting_funds', 'funded', 'paying_out', 'needs_review'], 'resolve'],
])('the next command of a settlement in %j is %s', async ([path, command], { api, partner, ops, clock }) => {
  const settlementId = await openSettlement(api, partner, path, clock.now());
  const { next } = JSON.parse((await ops('show', settlementId, '--json')).printed.join(''));
  expect(next[0].command).toMatch(new RegExp(`^npm run ops -- ${command} `));
});

test('the next command of a settlement whose window ended long ago is redispatch', async ({
  api,
  partner,
  ops,
  clock,
}) => {
  const since = new Date(clock.now().getTime() - 7_200_000);
  const settlementId = await openSettlement(api, partner, ['awaiting_funds'], since);
  const { next } = JSON.parse((await ops('show', settlementId, '--json')).printed.join(''));
  expect(next[0].command).toContain(`redispatch ${settlementId}`);
});

test('the next step after the end is to give back what is due, unless the rail has paid', async ({
  api,
  partner,
  steps,
  ops,
}) => {
  const nextOf = async (id: string) => JSON.parse((await ops('show', id, '--json')).printed.join('')).next[0];
  const canceled = await steps.waiting(BY_MANUAL_CARD);
  await sendCardproc(api, cardprocBody(canceled, { amount_received: 10_000 }));
  await api.call(partner, 'POST', `/v2/settle/${canceled}/cancel`);
  const { say, command, section } = await nextOf(canceled);
  expect([say, section]).toEqual([expect.stringContaining('100.00 USD is due back'), 'Money that is due back']);
  expect(command).toContain(`refund record ${canceled} `);
  const resolved = await steps.inReview();
  await requestResolution(api.deps, resolved, { outcome: 'refused', operator: 'ana', note: 'the rail said so' });
  await steps.activities.resolveReview(steps.step(resolved));
  expect((await nextOf(resolved)).command).toContain(`refund record ${resolved} `);
  await steps.answerPayout(resolved, 'payout_confirmed');
  const toKeep = { say: expect.stringContaining('Keep the 250.00 USD'), command: '' };
  expect(await nextOf(resolved)).toMatchObject(toKeep);
  await api.owner.pool.query(
    `INSERT INTO evidence (evidence_id, settlement_id, provider, event_id, kind, sha256, pending, reversed_minor, received_at)
     SELECT 'later-' || n, $1, 'cardproc', 'later-' || n, 'dispute_opened', sha256(''), false, 0, now()
     FROM generate_series(1, 50) n`,
    [resolved],
  );
  expect(await nextOf(resolved)).toMatchObject(toKeep);
});

test('show has the latest postings of a settlement, and the sum of all', async ({ api, partner, ops }) => {
  const { settlementId } = await insertSettledSettlement(api.connection.db, partner.orgId);
  const show = async () => JSON.parse((await ops('show', settlementId, '--json')).printed.join(''));
  const { sum_of_postings: sum } = await show();
  await api.owner.pool.query(
    `INSERT INTO postings (settlement_id, step, line, account, currency, amount_minor, at)
     SELECT p.settlement_id, 'later-' || lpad(n::text, 2, '0'), p.line, p.account, p.currency, p.amount_minor, now() + interval '1 day'
     FROM postings p, generate_series(1, 50) n
     WHERE p.settlement_id = $1 AND p.step = (SELECT min(step) FROM postings WHERE settlement_id = $1)`,
    [settlementId],
  );
  const { postings, sum_of_postings } = await show();
  expect([postings.length, postings.at(-1).step, sum_of_postings]).toEqual([50, 'later-50', sum]);
});

test('show has how far the clock of a settlement is ahead, by which its window ends, and what the bank took back', async ({
  api,
  partner,
  ops,
}) => {
  const id = await openSettlement(api, partner, ['awaiting_funds']);
  const columns = 'clock_offset_ms = 7200000, amount_received_minor = 1200, taken_back_minor = 1200';
  await api.owner.pool.query(`UPDATE settlements SET ${columns} WHERE settlement_id = $1`, [id]);
  const { clock_ahead_seconds, taken_back, next } = JSON.parse((await ops('show', id, '--json')).printed.join(''));
  expect([clock_ahead_seconds, taken_back, next[0].say]).toEqual([
    7_200,
    '12.00 USD',
    expect.stringMatching(/^Its wait should have ended/),
  ]);
});

test('show says that a window is over, as stuck does, also when money has come a moment ago', async ({
  api,
  partner,
  ops,
}) => {
  const id = await openSettlement(api, partner, ['awaiting_funds']);
  const columns = `clock_offset_ms = 7200000, amount_received_minor = amount_minor, updated_at = now() + '2 hours'`;
  await api.owner.pool.query(`UPDATE settlements SET ${columns} WHERE settlement_id = $1`, [id]);
  const { next } = JSON.parse((await ops('show', id, '--json')).printed.join(''));
  expect(next[0].say).toMatch(/^Its wait should have ended/);
  expect((await ops('stuck')).printed.join('\n')).toContain(id);
});

test('every section that a next step names is a heading of docs/operations.md', () => {
  const headings = readSource('docs/operations.md')
    .split('\n')
    .filter((line) => line.startsWith('#'));
  for (const section of RUNBOOK_SECTIONS) expect(headings.map((line) => line.replace(/^#+ /, ''))).toContain(section);
});

test.for([3_600_000, -3_600_000])(
  'a machine whose clock is %s ms ahead shows a settlement as any other, and asks who polls by the time of the database',
  async (aheadMs, { api, partner }) => {
    const id = await openSettlement(api, partner, ['awaiting_funds']);
    const askedMs: number[] = [];
    const unservedQueues = async (now: Date) => {
      askedMs.push(now.getTime());
      return [];
    };
    const ops = createOps(api.connection.db, { unservedQueues });
    const shown = async () => {
      const { printed } = await ops('show', id);
      return [printed.map((line) => line.replace(/\d+ s ago/, 'now')), (await ops('stuck')).exitCode];
    };
    const right = await shown();
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + aheadMs });
    expect(await shown().finally(() => vi.useRealTimers())).toEqual(right);
    expect(askedMs.map((ms) => Math.abs(ms - Date.now()) < 60_000)).toEqual([true, true, true, true]);
  },
);
