/** What the passes of crash points share: where they act, and how they wait and ask. */
import type { Client } from '@temporalio/client';
import type pg from 'pg';
import type { CrashPoint } from '../../domain/crash-point.ts';
import { queryOnce } from '../support/connection.ts';
import type { MailServer } from '../support/mail-server.ts';
import { stretched } from '../support/patience.ts';
import { until as waitUntil } from '../support/wait.ts';
import { type Answer, createHttpClient } from './client.ts';
import type { CourseDeps } from './course.ts';
import { outcomeOf } from './operator.ts';
import { type Subscriber, startSubscribers } from './subscriber.ts';
import { authorize, createRecipient, createTenant, type Tenant } from './tenant.ts';

/** Where points are passed. */
type Place = {
  readonly baseUrl: string;
  /** As the role of the service. */
  readonly databaseUrl: string;
  readonly temporal: Client;
  readonly mail: MailServer;
  /**
   * Runs an operator's command, which dies at the point. `operator` is written to the audit entries.
   *
   * @returns whether it died, and what it printed
   */
  readonly operate: (
    operator: string,
    args: readonly string[],
    point?: CrashPoint,
  ) => Promise<{ readonly hasDied: boolean; readonly exitCode: number | undefined; readonly output: string }>;
};

export type World = Pick<Place, 'databaseUrl' | 'mail' | 'operate'> & {
  readonly deps: CourseDeps;
  /** Its `webhookId` is that of the subscriber that always fails. */
  readonly tenant: Tenant;
  /** An active recipient. */
  readonly recipientId: string;
  /** Subscribes a subscriber, a healthy one unless it is said, to all events of a new tenant. */
  readonly subscribe: (behavior?: 'healthy' | 'fails_at_first') => Promise<Subscriber>;
  /** All subscribers that receive every event. */
  readonly listening: readonly Subscriber[];
  readonly close: () => Promise<void>;
};

export async function openWorld(place: Place): Promise<World> {
  const { baseUrl, temporal } = place;
  const subscribers = await startSubscribers();
  const http = createHttpClient(baseUrl);
  const tenant = await createTenant(http);
  const listening = [await subscribers.subscribe(http, tenant, 'healthy')];
  const { webhookId } = await subscribers.subscribe(http, tenant, 'always_fails');
  return {
    ...place,
    deps: {
      http,
      temporal,
      disturbedAt: () => 0,
      operate: async (args) => outcomeOf((await place.operate('oracle', args)).exitCode),
      signal: new AbortController().signal,
      onDisturbance: () => undefined,
    },
    tenant: { ...tenant, webhookId },
    recipientId: await createRecipient(http, tenant, 'Marcia Brown'),
    subscribe: async (behavior = 'healthy') => {
      const subscriber = await subscribers.subscribe(http, await createTenant(http), behavior);
      listening.push(subscriber);
      return subscriber;
    },
    listening,
    close: subscribers.close,
  };
}

/** Passes the point, survives the crash and reaches its end. Throws when something was lost or doubled. */
export type Pass = (world: World) => Promise<void>;

/** Everything that was begun is polled until its end, so slowly. */
const POLL_MS = 1_000;
const ARRIVAL_TIMEOUT_MS = stretched(120_000);

/** Waits until something is there. */
export const until = <Value>(what: string, find: () => Promise<Value | undefined>): Promise<Value> =>
  waitUntil(what, find, { timeoutMs: ARRIVAL_TIMEOUT_MS, everyMs: POLL_MS });

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

export const query = <Row extends pg.QueryResultRow>({ databaseUrl }: World, text: string): Promise<Row[]> =>
  queryOnce<Row>(databaseUrl, text);
