import { describe, expect } from 'vitest';
import { newId } from '../../db/id.ts';
import { lockSettlement } from '../../db/queries/settlement.ts';
import { withApi } from '../support/fixture.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { moveSettlement } from '../support/settlement.ts';

const test = withApi().extend('world', ({ api, partner }) => {
  const { db } = api.connection;
  return {
    lock: (id: string) => db.transaction((tx) => lockSettlement(tx, partner.orgId, id)),
    move: (settlement: Parameters<typeof moveSettlement>[1], to: Parameters<typeof moveSettlement>[2]['to']) =>
      db.transaction((tx) => moveSettlement(tx, settlement, { to, at: new Date(), reason: 'test' })),
  };
});

describe("a settlement's change", () => {
  test('is refused if the row changed after it was read, and nothing is written', async ({ api, steps, world }) => {
    const read = await world.lock(await steps.accept());
    await world.move(read, 'awaiting_funds');
    await expectUnchanged(api.connection.pool, async () => {
      await expect(world.move(read, 'awaiting_funds')).rejects.toThrow('was changed without its lock');
    });
  });

  test('is refused for another organization, and nothing is written', async ({ api, steps, world }) => {
    const read = await world.lock(await steps.accept());
    await expectUnchanged(api.connection.pool, async () => {
      await expect(world.move({ ...read, orgId: newId() }, 'awaiting_funds')).rejects.toThrow('without its lock');
    });
  });
});
