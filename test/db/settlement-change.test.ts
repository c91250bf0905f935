/** The statement that writes a settlement's changes, and the numbers of its events. */
import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { newId } from '../../db/id.ts';
import { lockSettlement } from '../../db/queries/settlement.ts';
import { events } from '../../db/schema/index.ts';
import { digestTables } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import { moveSettlement } from '../support/settlement.ts';

const test = withApi().extend('world', ({ api, partner }) => {
  const { db } = api.connection;
  return {
    lock: (id: string) => db.transaction((tx) => lockSettlement(tx, partner.orgId, id)),
    move: (settlement: Parameters<typeof moveSettlement>[1], to: Parameters<typeof moveSettlement>[2]['to']) =>
      db.transaction((tx) => moveSettlement(tx, settlement, { to, at: new Date(), reason: 'test' })),
    sequencesOf: async (id: string) => {
      const rows = await db.select().from(events).where(eq(events.objectId, id)).orderBy(events.sequence);
      return rows.map(({ sequence }) => sequence);
    },
  };
});

describe("a settlement's change", () => {
  test('of a row that has changed since it was read is refused, and nothing is written', async ({
    api,
    steps,
    world,
  }) => {
    const read = await world.lock(await steps.accept());
    await world.move(read, 'awaiting_funds');
    const before = await digestTables(api.connection.pool);
    await expect(world.move(read, 'awaiting_funds')).rejects.toThrow('was changed without its lock');
    expect(await digestTables(api.connection.pool)).toEqual(before);
  });

  test('of another organization is refused, and nothing is written', async ({ api, steps, world }) => {
    const read = await world.lock(await steps.accept());
    const before = await digestTables(api.connection.pool);
    await expect(world.move({ ...read, orgId: newId() }, 'awaiting_funds')).rejects.toThrow('without its lock');
    expect(await digestTables(api.connection.pool)).toEqual(before);
  });

  test('is numbered after an event that the previous version has written without counting it', async ({
    api,
    steps,
    world,
  }) => {
    const id = await steps.accept();
    const { orgId } = await world.lock(id);
    await api.connection.pool.query(
      `INSERT INTO events (event_id, org_id, type, object_type, object_id, sequence, body, created_at)
       VALUES ($1, $2, 'settlement.exception', 'settlement', $3, 2, '{}', now())`,
      [newId(), orgId, id],
    );
    await world.move(await world.lock(id), 'awaiting_funds');
    expect(await world.sequencesOf(id)).toEqual([1, 2, 3]);
  });
});
