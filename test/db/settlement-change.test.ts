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
  test.for(['version', 'eventSequence'] as const)(
    'is refused if %s changed after the row was read, and nothing is written',
    async (counter, { api, steps, world }) => {
      const read = await world.lock(await steps.accept());
      await expectUnchanged(api.connection.pool, async () => {
        const earlier = { ...read, [counter]: read[counter] - 1 };
        await expect(world.move(earlier, 'awaiting_funds')).rejects.toThrow('was changed without its lock');
      });
    },
  );

  test('is refused for another organization, and nothing is written', async ({ api, steps, world }) => {
    const read = await world.lock(await steps.accept());
    await expectUnchanged(api.connection.pool, async () => {
      await expect(world.move({ ...read, orgId: newId() }, 'awaiting_funds')).rejects.toThrow('without its lock');
    });
  });
});
