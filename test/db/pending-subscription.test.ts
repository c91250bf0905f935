/** A page of the subscriptions with retries costs what it lists, however many there are. */
import { expect } from 'vitest';
import type { Database } from '../../db/client.ts';
import {
  listDueSubscriptions,
  listPendingSubscriptions,
  listUnheardSubscriptions,
} from '../../db/queries/operator/pending-subscription.ts';
import type { OpenObject } from '../../db/queries/operator/waiting.ts';
import { SUBSCRIPTIONS_MAX } from '../../domain/webhook.ts';
import { createTestApi } from '../support/api.ts';
import { FILE, withDatabase } from '../support/fixture.ts';
import { ping, subscribe } from '../support/webhook.ts';
import { collectPlans, reportPlans, rowsRead, scansOf } from './plan.ts';

type Page = { readonly after: string; readonly limit: number };
type Listed = OpenObject | Awaited<ReturnType<typeof listUnheardSubscriptions>>[number];
type ListOne = readonly [string, (db: Database, page: Page, among: readonly string[]) => Promise<readonly Listed[]>];

const idOf = (one: Listed): string => ('message' in one ? one.message.objectId : one.webhookId);

const ORGANIZATIONS = 3;
const LIMIT = 5;
/** Of each subscription that is listed, and of one more: its index entry, its row, and what its condition reads. */
const ROWS_MAX = 4 * (LIMIT + 1);

/** Subscriptions with one retry each, which is due. */
const test = withDatabase().extend('retried', FILE, async ({ database, owner }, { onCleanup }) => {
  await reportPlans(database);
  const api = await createTestApi({ database: { ...database, drop: async () => undefined } });
  onCleanup(() => api.close());
  const ids: string[] = [];
  for (let n = 0; n < ORGANIZATIONS; n += 1) {
    const caller = await api.createCaller();
    for (let m = 0; m < SUBSCRIPTIONS_MAX; m += 1) {
      const { webhook_id: id } = await subscribe(api, caller, 'http://127.0.0.1:9999/hook');
      await ping(api, caller, id);
      ids.push(id);
    }
  }
  await owner.pool.query('UPDATE webhook_deliveries SET lane_key = NULL');
  await owner.pool.query(`UPDATE webhooks SET retries_at = now() - interval '1 hour'`);
  await owner.pool.query('VACUUM (ANALYZE)');
  return {
    db: api.connection.db,
    ids: ids.toSorted((a, b) => (a < b ? -1 : 1)),
    plans: collectPlans(api.connection.pool),
  };
});

test.for([
  ['with retries', (db, page) => listPendingSubscriptions(db, page, 'request')],
  ['with retries that are due', (db, page) => listDueSubscriptions(db, page, 'request')],
  ['whose workflow should have looked', (db, { limit }) => listUnheardSubscriptions(db, limit)],
  ['among some that are named', (db, page, among) => listDueSubscriptions(db, { ...page, among }, 'request')],
] satisfies readonly ListOne[])(
  'a page of subscriptions %s lists the first of them, and reads no others',
  async ([, list], { retried: { db, ids, plans } }) => {
    plans.length = 0;
    const found = await list(db, { after: '', limit: LIMIT }, ids.slice(0, LIMIT));
    expect(found.map(idOf)).toEqual(ids.slice(0, LIMIT));
    expect(plans).toHaveLength(1);
    for (const plan of plans)
      expect(scansOf(plan).reduce((sum, node) => sum + rowsRead(node), 0)).toBeLessThanOrEqual(ROWS_MAX);
  },
);

test('pages of subscriptions with retries continue after the last one', async ({ retried: { db, ids } }) => {
  const found: string[] = [];
  for (let after = ''; ; after = found.at(-1) ?? '') {
    const page = await listDueSubscriptions(db, { after, limit: LIMIT }, 'request');
    if (page.length === 0) break;
    found.push(...page.map(idOf));
  }
  expect(found).toEqual(ids);
});
