/** `ops partitions` against the database. */
import { expect } from 'vitest';
import { PARTITIONS_AHEAD, RETENTION } from '../../domain/retention.ts';
import { withApi } from '../support/fixture.ts';
import { createOps } from '../support/ops.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { openSettlement } from '../support/settlement.ts';

const DAY_MS = 86_400_000;

withApi()(
  'shows each month of each table, its size and the day on which it expires, as text and as JSON',
  async ({ api, partner }) => {
    await openSettlement(api, partner);
    const ops = createOps(api.connection.db);
    const { exitCode, printed } = await expectUnchanged(api.connection.pool, () => ops('partitions'));
    expect(exitCode).toBe(0);
    expect(printed[0]).toMatch(/^events_first: the beginning to \d{4}-\d\d-01, .* MB, expires on \d{4}-\d\d-\d\d$/);
    const { partitions } = JSON.parse((await ops('partitions', '--json')).printed.join('\n'));
    expect(partitions).toHaveLength(printed.length);
    const events = partitions.filter(({ table }: { table: string }) => table === 'events');
    // The first one ends this month or the next.
    expect(events.length).toBeGreaterThanOrEqual(PARTITIONS_AHEAD);
    const [first] = events;
    expect(first.bytes).toBeGreaterThan(0);
    expect(Date.parse(first.expires_on) - Date.parse(first.to)).toBe(RETENTION.events.daysMin * DAY_MS);
  },
);
