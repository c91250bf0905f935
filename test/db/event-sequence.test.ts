/** The migration that counts the events of the rows that exist already. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import { repositoryRoot } from '../../process/place.ts';
import { withApi } from '../support/fixture.ts';
import { createRecipient } from '../support/partner.ts';
import { ping, subscribe } from '../support/webhook.ts';

const MIGRATIONS = path.join(repositoryRoot, 'db/migrations');
const OBJECTS = { settlements: 'settlement_id', recipients: 'recipient_id', webhooks: 'webhook_id' };

const test = withApi();

/** The statements of the migration that change rows. */
function backfill(): string[] {
  const [file = ''] = readdirSync(MIGRATIONS).filter((name) => name.endsWith('_event_sequence_backfill.sql'));
  const statements = readFileSync(path.join(MIGRATIONS, file), 'utf8').split('--> statement-breakpoint');
  return statements.filter((statement) => /^\s*(--.*\n)*UPDATE/.test(statement.trimStart()));
}

test('every object gets the number of its latest event, and nothing else of it changes', async ({
  api,
  partner,
  steps,
}) => {
  const settled = await steps.acceptInternal();
  await steps.activities.admitSettlement(steps.step(settled));
  await steps.activities.sendPayout(steps.step(settled));
  await steps.accept();
  await api.call(partner, 'DELETE', `/v1/recipients/${await createRecipient(api, partner)}`);
  const { webhook_id: webhookId } = await subscribe(api, partner, 'https://hooks.partner.example/');
  await ping(api, partner, webhookId);
  await ping(api, partner, webhookId);
  const { pool } = api.owner;
  const rowsOf = async () => {
    const tables = Object.entries(OBJECTS).map(([table, id]) => pool.query(`SELECT * FROM ${table} ORDER BY ${id}`));
    return (await Promise.all(tables)).map(({ rows }) => rows);
  };
  const before = await rowsOf();
  expect(before.map((rows) => Math.max(...rows.map(({ event_sequence }) => event_sequence)))).toEqual([6, 1, 2]);
  await pool.query('UPDATE settlements SET event_sequence = 0');
  for (const table of ['recipients', 'webhooks'])
    await pool.query(`UPDATE ${table} SET event_sequence = 0, event_at = NULL`);
  expect(backfill()).toHaveLength(4);
  for (const statement of backfill()) await pool.query(statement);
  expect(await rowsOf()).toEqual(before);
});
