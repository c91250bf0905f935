import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Client, createClient } from '../../scripts/partner/client.ts';
import { cardSettlementBody, type Partner, signUp } from '../../scripts/partner/partner.ts';
import { PARTS, type ProcessStack, startProcessStack } from '../support/process-stack.ts';

const SETTLEMENTS = 100;
const CALLERS = 10;
const KILL_AFTER = 40;
const DOWN_MS = 500;
const ACCEPT_TIMEOUT_MS = 60_000;
const SETTLE_TIMEOUT_MS = 120_000;

let stack: ProcessStack;
let client: Client;
let partner: Partner;

beforeAll(async () => {
  stack = await startProcessStack();
  client = createClient({ baseUrl: () => stack.baseUrl, downtimeMaxMs: ACCEPT_TIMEOUT_MS });
  partner = await signUp(client.call);
}, 120_000);
afterAll(async () => {
  await client.close();
  await stack.close();
});

/** Settles a hundred times, and does something in the middle. A request without an answer is repeated with its key. */
async function settleAll(inTheMiddle: () => Promise<void>): Promise<string[]> {
  const body = cardSettlementBody(await partner.createRecipient());
  const accepted: string[] = [];
  let begun = 0;
  let disturbance: Promise<void> | undefined;
  const work = async (): Promise<void> => {
    while (begun < SETTLEMENTS) {
      begun += 1;
      accepted.push((await partner.settle(body)).settlement_id);
      if (accepted.length === KILL_AFTER) disturbance = inTheMiddle();
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, work));
  await disturbance;
  return accepted;
}

type Outcome = {
  status: string;
  n: number;
  certificates: number;
  postings: number;
  transitions: number;
  unbalanced: number;
};

async function outcomes(ids: readonly string[]): Promise<Outcome[]> {
  const client = new pg.Client({ connectionString: stack.databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<Outcome>(
      `SELECT s.status, count(*)::int AS n,
         sum((SELECT count(*) FROM certificates c WHERE c.settlement_id = s.settlement_id))::int AS certificates,
         sum((SELECT count(*) FROM postings p WHERE p.settlement_id = s.settlement_id))::int AS postings,
         sum((SELECT count(*) FROM settlement_transitions t WHERE t.settlement_id = s.settlement_id))::int AS transitions,
         sum((SELECT count(*) FROM (SELECT 1 FROM postings p WHERE p.settlement_id = s.settlement_id GROUP BY currency HAVING sum(amount_minor) <> 0) u))::int AS unbalanced
       FROM settlements s WHERE s.settlement_id = ANY($1) GROUP BY s.status`,
      [ids],
    );
    return rows;
  } finally {
    await client.end();
  }
}

describe('kill -9 in the middle of a hundred settlements', () => {
  test.each(PARTS)(
    'of the %s: all hundred settle, each posted and certified once',
    async (part) => {
      const ids = await settleAll(async () => {
        await stack.kill(part);
        await delay(DOWN_MS);
        await stack.start(part);
      });
      expect(new Set(ids).size).toBe(SETTLEMENTS);
      await expect
        .poll(() => outcomes(ids), { timeout: SETTLE_TIMEOUT_MS, interval: 500 })
        .toEqual([
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
    ACCEPT_TIMEOUT_MS + SETTLE_TIMEOUT_MS,
  );
});
