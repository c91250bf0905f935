/** A database with many settlements, of which one organization has a third. */
import { createSealer } from '../../db/seal.ts';
import { createTestApi, TEST_SECRETS } from '../support/api.ts';
import { queryOnce } from '../support/connection.ts';
import { fillHistory } from '../support/history-fill.ts';
import { startMonthsAgo } from '../support/months.ts';
import type { TestDatabase } from '../support/postgres.ts';
import { openSettlement } from '../support/settlement.ts';
import { fillSettlements } from '../support/settlement-fill.ts';
import { subscribe } from '../support/webhook.ts';
import type { Large } from './partner-flow.ts';

const OF_ORGANIZATION = 20;
const OPEN = 100;
/** Deliveries that lanes have claimed. Without some, PostgreSQL may read either index of the lanes. */
const UNDER_WAY = 400;
/** Nothing of it is of the last two weeks: some statements read what is recent. */
const AGE = `(20160 + n) * interval '1 minute'`;

export async function fillService(database: TestDatabase, settlements: number): Promise<Large> {
  const api = await createTestApi({ database: { ...database, drop: async () => undefined } });
  try {
    await startMonthsAgo(api.owner.pool, 4);
    const partner = await api.createCaller();
    const templateId = await openSettlement(api, partner);
    const { rows } = await api.owner.pool.query('SELECT recipient_id AS id FROM settlements');
    const recipientId = String(rows[0].id);
    const { webhook_id: webhookId } = await subscribe(api, partner, 'http://127.0.0.1:9999/hook');
    await fillSettlements(api.owner.pool, createSealer([TEST_SECRETS.encryption]), {
      ...{ orgId: partner.orgId, templateId, settlements: Math.floor(settlements / 3) },
      columns: {
        status: `CASE WHEN n <= ${OPEN} THEN 'awaiting_funds'
          ELSE (ARRAY['settled', 'settled', 'settled', 'failed', 'canceled'])[1 + n % 5] END`,
        corridor: `(ARRAY['US-JM', 'CA-JM'])[1 + n % 2]`,
        payment_method: `(ARRAY['card', 'wire', 'card'])[1 + n % 3]`,
        recipient_id: `CASE WHEN n % 5 = 4 THEN 'other' || n ELSE '${recipientId}' END`,
        amount_received_minor: `CASE WHEN n > ${OPEN} AND n % 5 < 3 THEN t.amount_minor ELSE 0 END`,
        reference: `'invoice ' || n % 20`,
        request_id: `'request-' || n`,
        metadata: `'{"team": "a"}'::jsonb`,
        created_at: `now() - ${AGE}`,
        updated_at: `now() - ${AGE}`,
      },
    });
    const organizations = settlements / OF_ORGANIZATION;
    await fillHistory(api.owner.pool, { orgId: partner.orgId, webhookId, organizations });
    await api.owner.pool.query(
      `UPDATE webhook_deliveries SET lane_key = 0, claimed_by = 1, claimed_at = now() WHERE delivery_id IN
        (SELECT delivery_id FROM webhook_deliveries WHERE status = 'pending' LIMIT ${UNDER_WAY})`,
    );
    // Without the service's time for a statement.
    await queryOnce(database.migrationUrl, 'VACUUM (ANALYZE)');
    return { partner, webhookId, recipientId };
  } finally {
    await api.close();
  }
}
