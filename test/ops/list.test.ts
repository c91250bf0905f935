/** `list`: each filter keeps what it should and leaves out the rest; nothing personal is printed. */
import { expect, vi } from 'vitest';
import { cardprocBody, sendCardproc } from '../support/cardproc.ts';
import { signIn } from '../support/consumer.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createOps } from '../support/ops.ts';
import { createRecipient } from '../support/partner.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { BY_MANUAL_CARD, openSettlement } from '../support/settlement.ts';
import { recordStatements } from '../support/statement-count.ts';
import { ping, subscribe } from '../support/webhook.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const act = (operator: string, note = 'why') => ['--operator', operator, '--note', note, '--yes'];
const MORE = 'More exist. --limit shows up to 1000; the filters narrow the list.';

const test = withApi()
  .extend('list', FILE, ({ api, clock }) => {
    const ops = createOps(api.connection.db, { now: clock.now });
    return async (...args: string[]) => {
      const { exitCode, printed, warned } = await ops('list', ...args, '--json');
      expect([exitCode, warned]).toEqual([0, []]);
      const asText = await ops('list', ...args);
      const { items, more } = JSON.parse(printed.join(''));
      const lines = asText.printed.filter((line) => line !== MORE);
      expect(lines).toHaveLength(Math.max(1, items.length));
      expect(asText.printed.length - lines.length).toBe(more ? 1 : 0);
      return items;
    };
  })
  .extend('other', FILE, ({ api }) => api.createCaller())
  .extend('small', FILE, ({ steps }) => steps.accept(BY_MANUAL_CARD))
  .extend('large', FILE, ({ steps }) => steps.waiting({ ...BY_MANUAL_CARD, amount: '900.00', reference: 'INV-7' }))
  .extend('foreign', FILE, ({ api, other }) => openSettlement(api, other))
  .extend('ended', FILE, ({ api, partner }) => openSettlement(api, partner, ['canceled']))
  .extend('all', FILE, ({ small, large, foreign, ended }) => ({ small, large, foreign, ended }));

test.for<[args: string[], found: ('small' | 'large' | 'foreign' | 'ended')[]]>([
  [[], ['foreign', 'large', 'small']],
  [['--status', 'canceled'], ['ended']],
  [
    ['--status', 'canceled', '--status', 'awaiting_funds'],
    ['ended', 'large'],
  ],
  [['--corridor', 'US-HT'], []],
  [['--min-amount', '899.99'], ['large']],
  [['--min-amount', '900.01'], []],
  [['--older-than', '1h'], []],
  [['--reference', 'INV-7'], ['large']],
  [['--reference', 'INV-7', '--status', 'canceled'], []],
  [['--reference', 'INV-8'], []],
])('list settlements %j', async ([args, found], { list, all }) => {
  const items: { settlement: string }[] = await list('settlements', ...args);
  const wanted = found.map((name) => all[name]);
  expect(items).toHaveLength(wanted.length);
  expect(new Set(items.map(({ settlement }) => settlement))).toEqual(new Set(wanted));
});

test('list settlements of one organization shows amount, reference and the end of the wait', async ({
  list,
  all,
  partner,
}) => {
  const items = await list('settlements', '--org', partner.orgId, '--status', 'awaiting_funds');
  expect(items).toEqual([
    {
      settlement: all.large,
      status: 'awaiting_funds',
      amount: '900.00 USD',
      corridor: 'US-JM',
      payment_method: 'card',
      reference: 'INV-7',
      recipient: expect.any(String),
      refund_due: null,
      refund_due_since: null,
      created_at: expect.any(String),
      changed_at: expect.any(String),
      until: expect.any(String),
      organization: partner.orgId,
    },
  ]);
});

test('list settlements of one organization has the ended ones too, the latest accepted first', async ({
  list,
  all,
  partner,
}) => {
  const items: { settlement: string }[] = await list('settlements', '--org', partner.orgId);
  expect(items.map(({ settlement }) => settlement)).toEqual([all.ended, all.large, all.small]);
});

test('a list says that more exist than its limit, and nothing when it has all', async ({ api, all }) => {
  const ops = createOps(api.connection.db);
  const shown = Object.values(all).length - 1;
  expect((await ops('list', 'settlements', '--limit', `${shown}`)).printed).not.toContain(MORE);
  const { printed } = await ops('list', 'settlements', '--limit', `${shown - 1}`);
  expect([printed.length, printed.at(-1)]).toEqual([shown, MORE]);
  for (const [limit, more] of [
    [shown, false],
    [shown - 1, true],
  ] as const) {
    const data = JSON.parse((await ops('list', 'settlements', '--limit', `${limit}`, '--json')).printed.join(''));
    expect([data.items.length, data.more]).toEqual([limit, more]);
  }
});

test('list settlements --refund-due shows what is due, the longest due first', async ({
  api,
  partner,
  list,
  steps,
}) => {
  const due: string[] = [];
  for (const amount of [10_000, 20_000, 5_000]) {
    const settlement = await steps.waiting(BY_MANUAL_CARD);
    await sendCardproc(api, cardprocBody(settlement, { amount_received: amount }));
    await api.call(partner, 'POST', `/v2/settle/${settlement}/cancel`);
    due.push(settlement);
  }
  const ops = createOps(api.connection.db);
  const [first = ''] = due;
  await ops('refund', 'record', first, '--amount', '30', '--reference', 'TRX', ...act('ana'));
  const items: { settlement: string; refund_due: string }[] = await list('settlements', '--refund-due', '--limit', '2');
  expect(items).toMatchObject([
    { settlement: due[0], refund_due: '70.00 USD' },
    { settlement: due[1], refund_due: '200.00 USD' },
  ]);
});

test('list keys --expiring shows the last full keys of partners that expire within 14 days, the soonest first', async ({
  api,
  list,
}) => {
  const callers = await Promise.all([1, 2, 3, 4].map(() => api.createCaller()));
  const [soon, sooner, renewed, late] = callers;
  const expires = async (caller: { keyId: string } | undefined, days: number) =>
    await api.owner.pool.query("UPDATE api_keys SET expires_at = now() + $2 * interval '1 day' WHERE key_id = $1", [
      caller?.keyId,
      days,
    ]);
  await Promise.all([expires(soon, 13), expires(sooner, 1), expires(renewed, 1), expires(late, 15)]);
  await api.createKey(renewed?.orgId ?? '', 'full', { expiresAt: new Date(Date.now() + 90 * DAY_MS) });
  const items: { key: string }[] = await list('keys', '--expiring');
  expect(items.map(({ key }) => key)).toEqual([sooner?.keyId, soon?.keyId]);
});

test('list settlements of one recipient has the ended ones too', async ({ list, all, partner }) => {
  const canceled: { settlement: string; recipient: string }[] = await list(
    ...['settlements', '--status', 'canceled', '--org', partner.orgId],
  );
  const ended = canceled.find(({ settlement }) => settlement === all.ended) ?? expect.fail();
  expect(await list('settlements', '--recipient', ended.recipient)).toEqual([ended]);
});

test('list settlements --older-than keeps what has not changed for so long, and --limit cuts the list', async ({
  list,
  all,
  clock,
}) => {
  clock.advance(2 * HOUR_MS);
  expect(await list('settlements', '--older-than', '119min')).toHaveLength(3);
  expect(await list('settlements', '--older-than', '3h')).toEqual([]);
  const [first, ...rest] = await list('settlements', '--limit', '1');
  expect([Object.values(all).includes(first.settlement), rest]).toEqual([true, []]);
});

test('list settlements --older-than on a machine whose clock is a day ahead keeps what is old by the database', async ({
  api,
  all,
}) => {
  const ops = createOps(api.connection.db);
  const listed = async () => (await ops('list', 'settlements', '--older-than', '1h', '--json')).printed.join('');
  const right = await listed();
  expect(right).not.toContain(all.small);
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + DAY_MS });
  expect(await listed().finally(() => vi.useRealTimers())).toBe(right);
});

test('list deliveries and list subscriptions, by status, subscription and organization', async ({
  api,
  other,
  partner,
  list,
}) => {
  const subscription = await subscribe(api, other, 'http://127.0.0.1:9999/hook?token=query-secret');
  const { delivery_id: deliveryId } = await ping(api, other, subscription.webhook_id);
  const found = await list('deliveries', '--webhook', subscription.webhook_id);
  expect(found).toMatchObject([{ delivery: deliveryId, status: 'pending', organization: other.orgId }]);
  expect(await list('deliveries', '--org', partner.orgId)).toEqual([]);
  expect(await list('deliveries', '--status', 'succeeded')).toEqual([]);
  const subscriptions = await list('subscriptions', '--status', 'enabled', '--org', other.orgId);
  expect(subscriptions).toMatchObject([{ webhook: subscription.webhook_id, url: 'http://127.0.0.1:9999/***' }]);
  for (const status of ['disabled', 'failing', 'deleted']) {
    expect(await list('subscriptions', '--status', status)).toEqual([]);
  }
  await api.call(other, 'DELETE', `/v1/webhooks/${subscription.webhook_id}`);
  expect(await list('subscriptions', '--status', 'deleted')).toMatchObject([{ status: 'deleted' }]);
  expect(await list('subscriptions')).toEqual([]);
});

test('list evidence, by kind and by whether a workflow has decided by it', async ({ api, steps, list, partner }) => {
  const settlement = await steps.waiting(BY_MANUAL_CARD);
  await sendCardproc(api, cardprocBody(settlement, {}, 'payment_intent.payment_failed'));
  const found = [{ settlement, kind: 'collection_failed', decided: false, organization: partner.orgId }];
  expect(await list('evidence', '--pending')).toMatchObject(found);
  expect(await list('evidence', '--kind', 'collection_failed', '--org', partner.orgId)).toMatchObject(found);
  expect(await list('evidence', '--kind', 'payout_refused')).toEqual([]);
});

test('list audit, by operator, action and object', async ({ api, list, steps }) => {
  const settlement = await steps.accept(BY_MANUAL_CARD);
  const ops = createOps(api.connection.db);
  await ops('redispatch', settlement, ...act('ana'));
  await ops('cancel', settlement, ...act('ben', 'asked'));
  expect(await list('audit', '--object', settlement)).toMatchObject([
    { action: 'settlement_cancel', operator: 'ben', note: 'asked' },
    { action: 'settlement_redispatch', operator: 'ana', note: 'why' },
  ]);
  expect(await list('audit', '--operator', ' Ana ', '--object', settlement)).toHaveLength(1);
  expect(await list('audit', '--action', 'gate_record')).toEqual([]);
});

test('list orgs shows who has no full key and who is suspended, and list keys shows keys by status', async ({
  api,
  list,
}) => {
  const lost = await api.createCaller('read');
  // A consumer has no key, and is no partner.
  await signIn(api);
  expect(await list('orgs', '--without-key')).toMatchObject([
    { organization: lost.orgId, contact: 'd***@acme.example', active_full_keys: 0 },
  ]);
  const expired = await api.createKey(lost.orgId, 'full', { expiresAt: new Date(Date.now() - 1) });
  expect(await list('orgs', '--without-key')).toHaveLength(1);
  expect(await list('keys', '--org', lost.orgId, '--status', 'expired')).toMatchObject([{ key: expired.keyId }]);
  expect(await list('keys', '--org', lost.orgId, '--status', 'active', '--scope', 'full')).toEqual([]);
  expect(await list('keys', '--org', lost.orgId)).toHaveLength(2);
  expect(await list('orgs', '--suspended')).toEqual([]);
  await createOps(api.connection.db)('org', 'suspend', lost.orgId, ...act('ana'));
  expect(await list('orgs', '--suspended')).toMatchObject([{ organization: lost.orgId }]);
});

test('every list leaves out what is of another organization, and what is newer than --older-than', async ({
  api,
  partner,
  list,
  steps,
}) => {
  const { webhook_id: webhookId } = await subscribe(api, partner, 'http://127.0.0.1:9999/');
  await ping(api, partner, webhookId);
  await sendCardproc(api, cardprocBody(await steps.waiting(BY_MANUAL_CARD)));
  const canceled = await steps.accept(BY_MANUAL_CARD);
  await createOps(api.connection.db)('cancel', canceled, '--operator', 'ana', '--note', 'why', '--yes');
  for (const name of ['settlements', 'deliveries', 'subscriptions', 'evidence', 'audit', 'keys']) {
    expect(await list(name, '--org', partner.orgId), name).not.toEqual([]);
    expect(await list(name, '--org', 'nobody'), name).toEqual([]);
    expect(await list(name, '--older-than', '1d'), name).toEqual([]);
  }
  expect(await list('orgs', '--older-than', '1d')).toEqual([]);
});

test.for(['settlements', 'deliveries', 'subscriptions', 'evidence', 'audit', 'orgs', 'keys'])(
  'list %s may take minutes: no index has every filter',
  async (name, { api }) => {
    const recorded = recordStatements(api.connection.pool);
    await createOps(api.connection.db)('list', name);
    expect(recorded()).toContainEqual(expect.stringContaining("statement_timeout = '10min'"));
  },
);

test('no list prints a name of a person, a contact, an account, a raw key or the path of a URL', async ({
  api,
  partner,
  all,
}) => {
  await createRecipient(api, partner, { name: 'Marcia Secretive', email: 'm@mail.example' });
  await subscribe(api, partner, 'http://127.0.0.1:9999/hook?token=query-secret');
  const ops = createOps(api.connection.db);
  await expectUnchanged(api.connection.pool, async () => {
    const lists = ['settlements', 'deliveries', 'subscriptions', 'evidence', 'audit', 'orgs', 'keys'];
    const printed = JSON.stringify(
      await Promise.all(lists.flatMap((name) => [ops('list', name), ops('list', name, '--json')])),
    );
    expect(printed).toContain(all.large);
    for (const hidden of ['Secretive', 'm@mail', 'dev@acme', 'query-secret', '123456789', partner.apiKey, 'tok_manual'])
      expect(printed).not.toContain(hidden);
  });
});

test.for([
  ['settlements', '--status', 'lost'],
  ['settlements', '--older-than', 'yesterday'],
  ['settlements', '--min-amount', '1,000'],
  ['deliveries', '--limit', '0'],
  ['audit', '--action', 'nothing'],
  ['payouts'],
])('list %j exits with 2 and names the fault', async (args, { api }) => {
  const { exitCode, printed, warned } = await createOps(api.connection.db)('list', ...args);
  expect([exitCode, printed, warned.length]).toEqual([2, [], 2]);
});
