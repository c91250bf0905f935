import { sql } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import type { Tx } from '../../db/client.ts';
import { createRecipient, deactivateRecipient } from '../../db/commands/recipient.ts';
import { getRecipient, recipientLockSql } from '../../db/queries/recipient.ts';
import type { Recipient, RecipientDraft } from '../../domain/recipient.ts';
import { recipientResource } from '../../domain/resource/recipient.ts';
import { untilBlocked } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import { expectUnchanged } from '../support/refusal.ts';

/** `recipient`: a new one for each test, of an organization of its own. */
const test = withApi().extend('recipient', async ({ api }): Promise<Recipient> => {
  const { orgId } = await api.createCaller();
  const draft: RecipientDraft = {
    kind: 'vendor',
    entityType: 'business',
    name: 'Acme',
    country: 'JM',
    email: null,
    phone: null,
    bankDetails: { bank_name: 'National Commercial Bank', account_number: '404123456', currency: 'JMD' },
    mobileDetails: null,
    metadata: {},
  };
  const creation = { keyed: undefined, status: 201, show: recipientResource };
  const { resourceId } = await createRecipient(api.deps, orgId, draft, creation);
  return await getRecipient(api.deps, orgId, resourceId);
});

describe('a recipient', () => {
  test('is deactivated only after a step that was decided by it, not during it', async ({ api, recipient }) => {
    const { orgId, recipientId } = recipient;
    const { db, pool } = api.connection;
    const order: string[] = [];
    let deactivated: Promise<void> | undefined;
    await db.transaction(async (tx) => {
      await shareRecipient(tx, recipientId);
      deactivated = deactivateRecipient(api.deps, orgId, recipientId, 'test').then(() => {
        order.push('deactivated');
      });
      await untilBlocked(pool, 1);
      expect((await getRecipient({ db: tx, sealer: api.deps.sealer }, orgId, recipientId)).isActive).toBe(true);
      order.push('decided');
    });
    await deactivated;
    expect(order).toEqual(['decided', 'deactivated']);
  });

  test('that changes before each write stays active: the tenth try is refused, and nothing is written', async ({
    api,
    recipient,
  }) => {
    const { orgId, recipientId } = recipient;
    const { pool } = api.owner;
    // To the statement it is the same whether the row has another version or refuses to be updated.
    await pool.query(`CREATE SEQUENCE tries;
      CREATE FUNCTION refuse_update() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
        AS $$ BEGIN PERFORM nextval('tries'); RETURN NULL; END $$;
      CREATE TRIGGER refuse_update BEFORE UPDATE ON recipients FOR EACH ROW
        WHEN (OLD.recipient_id = '${recipientId}') EXECUTE FUNCTION refuse_update()`);
    await expectUnchanged(api.connection.pool, () =>
      expect(deactivateRecipient(api.deps, orgId, recipientId, 'test')).rejects.toMatchObject({
        code: 'temporarily_unavailable',
      }),
    );
    expect((await pool.query('SELECT last_value FROM tries')).rows).toEqual([{ last_value: '10' }]);
  });

  test('does not make the steps of several settlements wait for one another', async ({ api, recipient }) => {
    const { db } = api.connection;
    await db.transaction(async (tx) => {
      await shareRecipient(tx, recipient.recipientId);
      await db.transaction((other) => shareRecipient(other, recipient.recipientId));
    });
  });
});

/** As a step of a settlement does. */
const shareRecipient = (tx: Tx, recipientId: string) =>
  tx.execute(sql`SELECT pg_advisory_xact_lock_shared(${sql.raw(recipientLockSql(`'${recipientId}'`))})`);
