/**
 * How often a page of a long list makes PostgreSQL count the list. What the page reads is held by test/db/plan.test.ts.
 */
import { describe, expect } from 'vitest';
import { createSealer } from '../../db/seal.ts';
import { COUNTED_MAX, cursorText } from '../../domain/page.ts';
import { TEST_SECRETS } from '../support/api.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { openSettlement } from '../support/settlement.ts';
import { fillSettlements } from '../support/settlement-fill.ts';
import { recordQueries } from '../support/statement-count.ts';

const SETTLEMENTS = 3 * COUNTED_MAX;
const STATUSES = `(ARRAY['settled', 'settled', 'settled', 'awaiting_funds', 'canceled'])[1 + n % 5]`;
const AFTER = `after=${cursorText({ at: new Date(Date.now() - (SETTLEMENTS / 2) * 1_000), id: 'stl_a' })}`;

const test = withApi()
  .extend('recipientId', FILE, async ({ api, partner }) => {
    const templateId = await openSettlement(api, partner);
    const { rows } = await api.owner.pool.query('SELECT recipient_id AS id FROM settlements');
    await fillSettlements(api.owner.pool, createSealer([TEST_SECRETS.encryption]), {
      ...{ orgId: partner.orgId, templateId, settlements: SETTLEMENTS },
      // None of the canceled ones is the recipient's.
      columns: { status: STATUSES, recipient_id: `CASE WHEN n % 5 = 4 THEN 'other' ELSE '${rows[0]?.id}' END` },
    });
    await api.owner.pool.query('VACUUM (ANALYZE) settlements');
    return String(rows[0]?.id);
  })
  /** Whether a page of this list counted the list. */
  .extend('isCounted', FILE, ({ api, partner, recipientId }) => async (query: string): Promise<boolean> => {
    const recorded = recordQueries(api.connection.pool);
    const answer = await api.call(partner, 'GET', `/v2/settlements?${query.replace('RECIPIENT', recipientId)}`);
    expect(answer.statusCode).toBe(200);
    return recorded().some(({ text }) => /count\(/.test(text) && /\bsettlements\b/.test(text));
  });

describe('a list that is longer than is counted', () => {
  test('is counted once, if it cannot become shorter', async ({ isCounted }) => {
    for (const query of [
      'recipient_id=RECIPIENT&created_from=2020-01-02T00:00:00Z',
      'status=settled&status=canceled',
    ]) {
      expect(await isCounted(query)).toBe(true);
      expect(await isCounted(query)).toBe(false);
      expect(await isCounted(`${query}&${AFTER}`)).toBe(false);
    }
  });

  test('is counted each time, if settlements can leave it, and shows its total once it is short enough', async ({
    api,
    partner,
    isCounted,
  }) => {
    const query = 'status=accepted&status=canceled&status=awaiting_funds';
    for (let time = 0; time < 2; time += 1) expect(await isCounted(query)).toBe(true);
    const total = async () =>
      (await api.call(partner, 'GET', `/v2/settlements?status=awaiting_funds&status=accepted`)).headers[
        'x-total-count'
      ];
    expect(await total()).toBe(String(SETTLEMENTS / 5 + 1));
  });

  test('is counted once, if those alone that cannot leave it are as many', async ({ isCounted }) => {
    const query = 'status=awaiting_funds&status=settled&created_from=2020-01-03T00:00:00Z';
    expect(await isCounted(query)).toBe(true);
    expect(await isCounted(query)).toBe(false);
  });

  test('says nothing about the same list of another organization', async ({ api, isCounted }) => {
    await isCounted('status=settled');
    const other = await api.createCaller('read');
    expect((await api.call(other, 'GET', '/v2/settlements?status=settled')).headers['x-total-count']).toBe('0');
  });
});
