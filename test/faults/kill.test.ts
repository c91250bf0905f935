import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { recipientBody, settleBody } from '../support/partner.ts';
import { PARTS, type ProcessStack, startProcessStack } from '../support/process-stack.ts';

const SETTLEMENTS = 100;
const CALLERS = 10;
const KILL_AFTER = 40;
const DOWN_MS = 500;
const ACCEPT_TIMEOUT_MS = 60_000;
const SETTLE_TIMEOUT_MS = 120_000;

let stack: ProcessStack;
let apiKey: string;

beforeAll(async () => {
  stack = await startProcessStack();
  const organization = await send('/v1/orgs', { name: 'Faults', country: 'JM', contact_email: 'dev@acme.example' });
  apiKey = String(organization['api_key']);
}, 120_000);
afterAll(() => stack.close());

/** What a careful client does: on anything but an answer, the same request with the same key again. */
async function send(path: string, body: Record<string, unknown>, key?: string): Promise<Record<string, unknown>> {
  const end = Date.now() + ACCEPT_TIMEOUT_MS;
  const headers = {
    'content-type': 'application/json',
    ...(apiKey ? { 'x-api-key': apiKey } : {}),
    ...(key === undefined ? {} : { 'idempotency-key': key }),
  };
  for (;;) {
    const answer = await fetch(`${stack.baseUrl}${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(10_000),
    }).catch(() => undefined);
    if (answer && answer.status < 300) return (await answer.json()) as Record<string, unknown>;
    if (answer && answer.status < 500) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
    if (Date.now() > end) throw new Error(`${path} was not accepted in time`);
    await delay(100);
  }
}

/** Settles a hundred times, and does something in the middle. */
async function settleAll(inTheMiddle: () => Promise<void>): Promise<string[]> {
  const { recipient_id: recipientId } = await send('/v1/recipients', recipientBody());
  const keys = Array.from({ length: SETTLEMENTS }, () => crypto.randomUUID());
  const accepted: string[] = [];
  let disturbance: Promise<void> | undefined;
  const work = async (): Promise<void> => {
    for (let key = keys.pop(); key !== undefined; key = keys.pop()) {
      const { settlement_id: id } = await send('/v2/settle', settleBody(String(recipientId)), key);
      accepted.push(String(id));
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
