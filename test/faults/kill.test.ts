/** The service as separate processes, one of which is killed while partners settle. */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { test as base, describe, expect } from 'vitest';
import { createClient } from '../../scripts/partner/client.ts';
import { cardSettlementBody, type Partner, signUp } from '../../scripts/partner/partner.ts';
import { FILE } from '../support/fixture.ts';
import { PARTS, startProcessStack } from '../support/process-stack.ts';

const SETTLEMENTS = 100;
const CALLERS = 10;
const KILL_AFTER = 40;
const DOWN_MS = 500;
const START_TIMEOUT_MS = 120_000;
const ACCEPT_TIMEOUT_MS = 60_000;
const SETTLE_TIMEOUT_MS = 120_000;

const test = base
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  .extend('stack', FILE, async ({}, { onCleanup }) => {
    const stack = await startProcessStack();
    onCleanup(stack.close);
    return stack;
  })
  .extend('client', FILE, ({ stack }, { onCleanup }) => {
    const client = createClient({ baseUrl: () => stack.baseUrl, downtimeMaxMs: ACCEPT_TIMEOUT_MS });
    onCleanup(client.close);
    return client;
  })
  .extend('partner', FILE, ({ client }) => signUp(client.call));
test.beforeAll(({ partner: _ }) => undefined, START_TIMEOUT_MS);

/**
 * Settles a hundred times, and runs `disturb` in the middle. A request without an answer is repeated with the same key.
 *
 * @returns the ids of the settlements
 */
async function settleAll(partner: Partner, disturb: () => Promise<void>): Promise<string[]> {
  const body = cardSettlementBody(await partner.createRecipient());
  const accepted: string[] = [];
  let begun = 0;
  let disturbance: Promise<void> | undefined;
  const work = async (): Promise<void> => {
    while (begun < SETTLEMENTS) {
      begun += 1;
      accepted.push((await partner.settle(body)).settlement_id);
      if (accepted.length === KILL_AFTER) disturbance = disturb();
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, work));
  await disturbance;
  return accepted;
}

/** Totals of the settlements in one status. */
type Totals = {
  status: string;
  n: number;
  certificates: number;
  postings: number;
  transitions: number;
  unbalanced: number;
};

async function countByStatus(databaseUrl: string, ids: readonly string[]): Promise<Totals[]> {
  const database = new pg.Client({ connectionString: databaseUrl });
  await database.connect();
  try {
    const { rows } = await database.query<Totals>(
      `SELECT s.status, count(*)::int AS n,
         sum((SELECT count(*) FROM certificates c WHERE c.settlement_id = s.settlement_id))::int AS certificates,
         sum((SELECT count(*) FROM postings p WHERE p.settlement_id = s.settlement_id))::int AS postings,
         sum((SELECT count(*) FROM settlement_transitions t
           WHERE t.settlement_id = s.settlement_id))::int AS transitions,
         sum((SELECT count(*) FROM (SELECT 1 FROM postings p WHERE p.settlement_id = s.settlement_id
           GROUP BY currency HAVING sum(amount_minor) <> 0) u))::int AS unbalanced
       FROM settlements s WHERE s.settlement_id = ANY($1) GROUP BY s.status`,
      [ids],
    );
    return rows;
  } finally {
    await database.end();
  }
}

describe('kill -9 in the middle of a hundred settlements', () => {
  test.for(PARTS)(
    'of the %s: all hundred settle, each posted and certified once',
    { timeout: ACCEPT_TIMEOUT_MS + SETTLE_TIMEOUT_MS },
    async (part, { stack, partner }) => {
      const ids = await settleAll(partner, async () => {
        await stack.kill(part);
        await delay(DOWN_MS);
        await stack.start(part);
      });
      expect(new Set(ids).size).toBe(SETTLEMENTS);
      const totals = () => countByStatus(stack.databaseUrl, ids);
      await expect.poll(totals, { timeout: SETTLE_TIMEOUT_MS, interval: 500 }).toEqual([
        {
          status: 'settled',
          n: SETTLEMENTS,
          certificates: SETTLEMENTS,
          postings: SETTLEMENTS * 12,
          transitions: SETTLEMENTS * 5,
          unbalanced: 0,
        },
      ]);
    },
  );
});
