/**
 * One torture run: lives at a steady pace while the monkey breaks the stack, then everything is mended, and once it is
 * quiet the promises are checked. The seed decides the lives, the subscribers and the faults.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import pg from 'pg';
import { checkDatabase, checkSubscribers, checkTemporal } from './check.ts';
import { createHttpClient, type HttpClient } from './client.ts';
import { lifeAt } from './life.ts';
import { faultName, planFaults, releaseMonkey } from './monkey.ts';
import { type LivedLife, live, type OracleDeps, type Tenant, type Violation } from './oracle.ts';
import { startTortureStack, type TortureStack } from './stack.ts';
import { MANNERS, type Subscriber, startSubscribers } from './subscriber.ts';

export type RunOptions = {
  readonly seed: number;
  readonly minutes: number;
  readonly monkey: boolean;
  /** How many lives begin each second. */
  readonly rate: number;
  /** Further environment of API and worker. */
  readonly env?: Readonly<Record<string, string>>;
  /** Ends the run early; what was started is stopped. */
  readonly signal?: AbortSignal;
  /** Called with a line now and then. */
  readonly say: (line: string) => void;
};

export type RunReport = {
  readonly seed: number;
  readonly minutes: number;
  readonly lives: number;
  readonly ends: Readonly<Record<string, number>>;
  /** How often each planned fault truly happened; 0 fails the run. */
  readonly faults: Readonly<Record<string, number>>;
  readonly violations: readonly Violation[];
  readonly deliveries: number;
};

const TENANTS = 5;
const SAY_EVERY_MS = 20_000;
const QUIET_TIMEOUT_MS = 120_000;
const QUIET_POLL_MS = 500;
/** Lives under way at once; when the service is slower than the pace, the next one waits. */
const LIVES_AT_ONCE_MAX = 60;

export async function torture(options: RunOptions): Promise<RunReport> {
  const { seed, minutes, monkey, say } = options;
  const durationMs = minutes * 60_000;
  const stack = await startTortureStack(options.env);
  const subscribers = await startSubscribers();
  const connection = await Connection.connect({ address: stack.temporalAddress });
  const temporal = new Client({ connection });
  const ended = new AbortController();
  options.signal?.addEventListener('abort', () => ended.abort(), { once: true });
  try {
    const http = createHttpClient(stack.baseUrl);
    const tenants = await Promise.all(Array.from({ length: TENANTS }, () => createTenant(http)));
    const listening = await Promise.all(
      tenants.flatMap((tenant, index) =>
        [MANNERS[0], MANNERS[index % MANNERS.length] ?? MANNERS[0]].map((manner) =>
          subscribers.subscribe(http, tenant, manner),
        ),
      ),
    );
    const plan = monkey ? planFaults(seed, durationMs) : [];
    say(`seed ${seed}: ${minutes} min, ${plan.length} faults planned; logs in ${stack.folder}`);
    const deps: OracleDeps = { http, temporal, signal: ended.signal };
    const [lived, fired] = await Promise.all([
      liveAll(deps, tenants, options, durationMs),
      releaseMonkey(stack, plan, ended.signal),
    ]);
    const violations = [
      ...lived.flatMap((life) => life.violations),
      ...http.broken.map((detail) => ({ life: -1, rule: 'no 500', detail })),
      ...(await settleDown(stack, listening)),
      ...(await checkAll(stack, temporal, listening)),
    ];
    return {
      seed,
      minutes,
      lives: lived.length,
      ends: countEnds(lived),
      faults: Object.fromEntries(plan.map((fault) => [faultName(fault), fired.get(faultName(fault)) ?? 0])),
      violations: [...violations, ...neverFired(plan.map(faultName), fired)],
      deliveries: listening.reduce((sum, { events }) => sum + events.size, 0),
    };
  } finally {
    ended.abort();
    await subscribers.close();
    await connection.close();
    await stack.close();
  }
}

async function createTenant(http: HttpClient): Promise<Tenant> {
  const body = { name: 'Torture', country: 'JM', contact_email: 'dev@acme.example' };
  const created = await http.untilAnswered({ method: 'POST', path: '/v1/orgs', body });
  return { orgId: created.body.org_id, apiKey: created.body.api_key };
}

/** Begins a life at each beat until the time is over, then waits for those under way. */
async function liveAll(
  deps: OracleDeps,
  tenants: readonly Tenant[],
  { seed, rate, say }: RunOptions,
  durationMs: number,
): Promise<LivedLife[]> {
  const lived: LivedLife[] = [];
  const underWay = new Set<Promise<void>>();
  const beginAt = Date.now();
  let saidAt = beginAt;
  for (let index = 0; !deps.signal.aborted && Date.now() - beginAt < durationMs; index += 1) {
    const tenant = tenants[index % tenants.length];
    if (tenant === undefined) break;
    const life = live(deps, tenant, index, lifeAt(seed, index)).then((result) => {
      lived.push(result);
      underWay.delete(life);
    });
    underWay.add(life);
    if (Date.now() - saidAt > SAY_EVERY_MS) {
      saidAt = Date.now();
      const found = lived.reduce((sum, { violations }) => sum + violations.length, 0);
      say(`  ${Math.round((saidAt - beginAt) / 1_000)} s: ${lived.length} lives ended, ${found} violations`);
    }
    if (underWay.size >= LIVES_AT_ONCE_MAX) await Promise.race(underWay);
    await delay(1_000 / rate);
  }
  await Promise.all(underWay);
  return lived;
}

/** Waits until nothing is on its way; what is not quiet in time is a violation. */
async function settleDown(stack: TortureStack, listening: readonly Subscriber[]): Promise<Violation[]> {
  await stack.untilReady();
  const healthy = listening.filter(({ manner }) => manner === 'well' || manner === 'fails_at_first');
  const webhookIds = healthy.map(({ webhookId }) => webhookId);
  const client = new pg.Client({ connectionString: stack.databaseUrl });
  await client.connect();
  try {
    const end = Date.now() + QUIET_TIMEOUT_MS;
    for (;;) {
      const { rows } = await client.query<{ rows: number; due: number }>(
        `SELECT (SELECT count(*)::int FROM outbox) AS rows,
          (SELECT count(*)::int FROM webhook_deliveries 
            WHERE status = 'pending' AND webhook_id = ANY ($1) AND next_attempt_at < now() - interval '1 second') AS due`,
        [webhookIds],
      );
      const [left] = rows;
      if (left?.rows === 0 && left.due === 0) return [];
      if (Date.now() > end)
        return [
          {
            life: -1,
            rule: 'everything comes to rest',
            detail: `${left?.rows} outbox rows, ${left?.due} deliveries are due`,
          },
        ];
      await delay(QUIET_POLL_MS);
    }
  } finally {
    await client.end();
  }
}

async function checkAll(stack: TortureStack, temporal: Client, listening: readonly Subscriber[]): Promise<Violation[]> {
  return [
    ...(await checkDatabase(stack.databaseUrl)),
    ...(await checkTemporal(temporal, stack.databaseUrl)),
    ...(await checkSubscribers(stack.databaseUrl, listening)),
  ];
}

function countEnds(lived: readonly LivedLife[]): Record<string, number> {
  const ends: Record<string, number> = {};
  for (const { last } of lived) {
    const status: string = last?.status ?? 'not accepted';
    ends[status] = (ends[status] ?? 0) + 1;
  }
  return ends;
}

const neverFired = (planned: readonly string[], fired: ReadonlyMap<string, number>): Violation[] =>
  [...new Set(planned)]
    .filter((name) => !fired.has(name))
    .map((name) => ({ life: -1, rule: 'every planned fault happens', detail: `${name} never did` }));
