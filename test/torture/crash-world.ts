/** What the passes of crash points share: where they act, and how they wait and ask. */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { MailServer } from '../support/mail-server.ts';
import type { ProcessStack } from '../support/process-stack.ts';
import type { Answer } from './client.ts';
import type { CourseDeps } from './course.ts';
import type { Subscriber } from './subscriber.ts';
import { authorize, type Tenant } from './tenant.ts';

export type World = {
  readonly stack: ProcessStack;
  readonly deps: CourseDeps;
  /** Answers that no caller may get, by any API. */
  readonly broken: string[];
  /** Its `webhookId` is that of the subscriber that always fails. */
  readonly tenant: Tenant;
  /** An active recipient. */
  readonly recipientId: string;
  /** Subscribes to all events of a new tenant, and answers well. */
  readonly subscribe: () => Promise<Subscriber>;
  readonly mail: MailServer;
};

/** Passes the point, survives the crash and reaches its end. Throws when something was lost or doubled. */
export type Pass = (world: World) => Promise<void>;

/** Everything that was begun is polled until its end, so slowly. */
const POLL_MS = 1_000;
const ARRIVAL_TIMEOUT_MS = 120_000;

/** Waits until something is there. */
export async function until<Value>(
  { deps: { disturbedAt } }: World,
  what: string,
  find: () => Promise<Value | undefined>,
): Promise<Value> {
  const beganAt = Date.now();
  for (;;) {
    const found = await find();
    if (found !== undefined) return found;
    if (Date.now() - Math.max(beganAt, disturbedAt()) > ARRIVAL_TIMEOUT_MS)
      throw new Error(`${what} did not happen in ${ARRIVAL_TIMEOUT_MS / 1_000} s`);
    await delay(POLL_MS);
  }
}

export function requireStatus(answer: Answer, ...allowed: readonly number[]): Answer {
  if (!allowed.includes(answer.status)) throw new Error(`answered ${answer.status}: ${answer.text}`);
  return answer;
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** A request that is sent again carries the same key: a creation whose answer was lost is answered, not repeated. */
export const send = ({ deps: { http } }: World, tenant: Tenant, method: Method, path: string, body?: object) => {
  const key = method === 'POST' ? { 'idempotency-key': crypto.randomUUID() } : {};
  return http.untilAnswered({ method, path, headers: authorize(tenant, key), ...(body === undefined ? {} : { body }) });
};

export async function query<Row extends pg.QueryResultRow>(world: World, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: world.stack.databaseUrl });
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows;
  } finally {
    await client.end();
  }
}
