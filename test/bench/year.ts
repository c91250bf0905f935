/**
 * `year`: 13 months of retention in minutes, while requests are served. Each month is written as the service would have
 * written it, as long ago as it is; then the clock of retention moves to its end. What may go goes, and what is
 * promised is read again.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { request } from 'undici';
import { connect, type Database } from '../../db/client.ts';
import { deleteExpiredDeliveries, dropExpiredPartition, listPartitions } from '../../db/queries/retention.ts';
import { DELIVERIES_DELETED_MAX, RETENTION } from '../../domain/retention.ts';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { withReceiver } from '../support/http-server.ts';
import { startMonthsAgo } from '../support/months.ts';
import { type Bench, count, percentile, report } from './bench.ts';
import { startDrive, untilSettled } from './drive.ts';
import { createPayer, type Payer } from './payer.ts';
import { withBenchStack } from './stack.ts';

const MONTHS = 13;
const DAY_MS = 86_400_000;
const OK = 200;
/** Waited for by others, while a month is dropped. */
const LOCK_MS_MAX = 200;
const SAMPLE_MS = 10;
/** Three months are kept, one is under way, and a month goes some days after its last day. */
const KEPT_MONTHS_MAX = 5;
/** What is deleted by rows leaves room that is used again. */
const SIZE_SLACK = 1.25;
const EVENTS_OF_SETTLEMENT = 7;
/** The others are of its certificate. */
const OWN_EVENTS = 6;
const BODY_BYTES = 1_100;

/** The events of a month's settlements, each with a delivery and its attempt; and as many quotes. */
const MONTH = `WITH given AS (
    SELECT id_at(at) || '-7' || substr(gen_random_uuid()::text, 16) AS id, at, n FROM (
      SELECT $3::timestamptz + n * (($4::timestamptz - $3::timestamptz) / $5::int) AS at, n
      FROM generate_series(0, $5::int - 1) n) spread
  ), event AS (
    INSERT INTO events (event_id, org_id, type, object_type, object_id, sequence, body, created_at)
    SELECT id, $1, 'settlement.settled', 'settlement', 'stl_' || id, 1, convert_to(rpad(id, ${BODY_BYTES}, md5(id)), 'UTF8'), at
    FROM given
  ), delivery AS (
    INSERT INTO webhook_deliveries (delivery_id, org_id, webhook_id, event_id, event_type, status, generation,
      prior_attempts, attempt_count, endings, request_id, created_at)
    SELECT id, $1, $2, id, 'settlement.settled', 'succeeded', 1, 0, 1, 0, 'year', at FROM given
  ), attempt AS (
    INSERT INTO webhook_attempts (delivery_id, number, at, outcome, response_status, duration_ms)
    SELECT id, 1, at, 'succeeded', 204, 5 FROM given
  )
  INSERT INTO quotes (quote_id, org_id, corridor, amount_minor, source_currency, payment_method, payout_rail, created_at,
    expires_at)
  SELECT id, $1, 'US-JM', 10000, 'USD', 'card', 'bank_transfer', at, at FROM given WHERE n % ${EVENTS_OF_SETTLEMENT} = 0`;

const SIZE = `SELECT sum(pg_total_relation_size(c.oid))::float8 AS bytes FROM pg_class c
  WHERE relname = 'webhook_deliveries' OR relispartition AND relkind = 'r'`;
const WAITING = `SELECT coalesce(max(extract(epoch FROM clock_timestamp() - waitstart)), 0)::float8 * 1000 AS ms
  FROM pg_locks JOIN pg_stat_activity USING (pid)
  WHERE NOT granted AND locktype = 'relation' AND waitstart IS NOT NULL AND query NOT LIKE '%drop_expired_partition%'`;

const DAYS_MAX = String(RETENTION.events.daysMax);
const OWN_SWEEPS_KEEP = { EVENT_RETENTION_DAYS: DAYS_MAX, QUOTE_RETENTION_DAYS: DAYS_MAX };

export const year: Bench = command({
  name: 'year',
  description: 'Moves the clock of retention through 13 months beside traffic. Exits with 1 if a promise is broken.',
  takes: {
    settlements: count('--settlements <count>', 'how many a month has', 10_000),
    seconds: count('--seconds <count>', 'how long a month lasts at least', 20),
    perSecond: count('--per-second <count>', 'settlements that are made meanwhile', 3),
  },
  run: (printer: Printer, { settlements, seconds, perSecond }) =>
    withBenchStack(({ database, databaseUrl, start, ...stack }) =>
      withReceiver(async (url) => {
        await startMonthsAgo(database, MONTHS + 1);
        // The worker's own sweeps drop nothing: this command moves the clock.
        await start('api/main.ts');
        await start('worker/main.ts', OWN_SWEEPS_KEEP);
        const service = connect(databaseUrl, { poolSizeMax: 1, name: 'bench', onIdleError: () => undefined });
        try {
          const payer = await createPayer(stack);
          await payer.subscribe(url);
          const promise = await makePromise(stack.apiUrl, payer);
          const driven = startDrive([payer], perSecond, performance.now() + MONTHS * seconds * 1_000);
          const { rows } = await database.query('SELECT webhook_id AS id FROM webhooks LIMIT 1');
          const lived: Month[] = [];
          for (let ago = MONTHS; ago >= 1; ago -= 1) {
            const writing = {
              orgId: payer.orgId,
              webhookId: String(rows[0].id),
              rows: settlements * EVENTS_OF_SETTLEMENT,
            };
            const month = await live(database, service.db, { ...writing, ago, lastsMs: seconds * 1_000 });
            lived.push({ ...month, times: driven.takeTimes() });
            printer.warn(`${month.from}: ${month.deleted} deliveries deleted, ${month.dropped.length} tables dropped`);
          }
          const { paid, skipped, failed } = await driven.done;
          await untilSettled(database);
          report(printer, 'year', [{ head: HEAD, rows: lived.map(rowOf) }]);
          const faults = [
            ...faultsOf(lived),
            ...(await brokenPromises(database, payer, promise)),
            ...(failed > 0 ? [`${failed} requests failed`] : []),
          ];
          printer.print(`${paid} settlements were made meanwhile, ${skipped} left out, ${failed} failed.`);
          for (const fault of faults) printer.warn(fault);
          return faults.length === 0 ? EXIT.done : EXIT.refused;
        } finally {
          await service.close();
        }
      }),
    ),
});

type Month = {
  readonly from: string;
  readonly deleted: number;
  readonly dropped: readonly string[];
  readonly dropMs: number;
  readonly lockMs: number;
  readonly bytes: number;
  readonly writtenBytes: number;
  readonly partitions: number;
  readonly times: readonly number[];
};

const HEAD = [
  'month',
  'MB on disk',
  'tables',
  'deliveries deleted',
  'dropped',
  'slowest drop ms',
  'longest wait ms',
  'POST p99 ms',
];
const MB = 1_000_000;
const rowOf = ({ from, bytes, partitions, deleted, dropped, dropMs, lockMs, times }: Month) => [
  ...[from, [bytes / MB], String(partitions), String(deleted), String(dropped.length)],
  ...[[dropMs], [lockMs], times.length === 0 ? '' : [percentile(times, 0.99)]],
];

type Writing = { readonly orgId: string; readonly webhookId: string; readonly rows: number };

/** Writes a month, moves the clock to its end, and lets go what is past its time then, as sweeps do. */
async function live(
  owner: pg.Pool,
  db: Database,
  { orgId, webhookId, rows, ago, lastsMs }: Writing & { readonly ago: number; readonly lastsMs: number },
): Promise<Month> {
  const startedMs = performance.now();
  const monthOf = (months: number) =>
    new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() - months));
  const [from, to] = [monthOf(ago), monthOf(ago - 1)];
  const sizeOf = async (): Promise<number> => Number((await owner.query(SIZE)).rows[0].bytes);
  const before = await sizeOf();
  await owner.query(MONTH, [orgId, webhookId, from.toISOString(), to.toISOString(), rows]);
  const writtenBytes = (await sizeOf()) - before;
  // The clock stands at the end of the month: a time that is kept from now on is so much longer.
  const sinceDays = Math.round((Date.now() - to.getTime()) / DAY_MS);
  const days = { events: RETENTION.events.daysMin + sinceDays, quotes: RETENTION.quotes.daysDefault + sinceDays };
  let [deleted, step] = [0, DELIVERIES_DELETED_MAX];
  while (step === DELIVERIES_DELETED_MAX) {
    step = await deleteExpiredDeliveries(db, days.events);
    deleted += step;
  }
  let [lockMs, isOver, dropMs]: [number, boolean, number] = [0, false, 0];
  const sampling = (async () => {
    while (!isOver) {
      lockMs = Math.max(lockMs, Number((await owner.query(WAITING)).rows[0].ms));
      await delay(SAMPLE_MS);
    }
  })();
  const dropped: string[] = [];
  for (;;) {
    const calledMs = performance.now();
    const name = await dropExpiredPartition(db, days);
    dropMs = Math.max(dropMs, performance.now() - calledMs);
    if (name === null) break;
    dropped.push(name);
  }
  isOver = true;
  await sampling;
  await owner.query('VACUUM webhook_deliveries');
  await delay(Math.max(0, startedMs + lastsMs - performance.now()));
  const partitions = (await listPartitions(db)).length;
  const facts = { deleted, dropped, dropMs, lockMs, bytes: await sizeOf(), writtenBytes, partitions, times: [] };
  return { from: from.toISOString().slice(0, 7), ...facts };
}

/** What a keyed request was answered in the first month. */
type Promised = { readonly headers: Record<string, string>; readonly body: string; readonly answer: string };

async function settleKeyed(apiUrl: string, { headers, body }: Omit<Promised, 'answer'>): Promise<string> {
  const answer = await request(`${apiUrl}/v2/settle`, { method: 'POST', headers, body });
  return await answer.body.text();
}

async function makePromise(apiUrl: string, payer: Payer): Promise<Promised & { readonly apiUrl: string }> {
  const { apiKey, settleBody: body } = payer;
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json', 'idempotency-key': randomUUID() };
  const answer = await settleKeyed(apiUrl, { headers, body });
  await payer.pay(JSON.parse(answer).settlement_id);
  return { headers, body, answer, apiUrl };
}

/** What is on disk is bounded by what is kept, and nobody waits long for a drop. */
function faultsOf(months: readonly Month[]): string[] {
  const written = Math.max(...months.map(({ writtenBytes }) => writtenBytes));
  const most = Math.max(...months.map(({ bytes }) => bytes));
  const bound = written * KEPT_MONTHS_MAX * SIZE_SLACK;
  const lockMs = Math.max(...months.map((month) => month.lockMs));
  return [
    ...(most > bound ? [`${most} bytes are on disk, more than ${bound}`] : []),
    ...(lockMs > LOCK_MS_MAX ? [`somebody waited for ${lockMs} ms`] : []),
    ...(months.some(({ dropped }) => dropped.length > 0) ? [] : ['no month was dropped']),
  ];
}

/**
 * Settlements, certificates, answers to keys and young events are there; and each event that is kept has its delivery.
 */
async function brokenPromises(
  owner: pg.Pool,
  { client, apiKey }: Payer,
  { answer, apiUrl, ...keyed }: Promised & { readonly apiUrl: string },
): Promise<string[]> {
  const faults: string[] = [];
  if ((await settleKeyed(apiUrl, keyed)) !== answer) faults.push('the first key is answered differently');
  const { rows } = await owner.query<{ id: string; events: number }>(
    `SELECT settlement_id AS id, (SELECT count(*)::int FROM events WHERE object_id = settlement_id) AS events
     FROM settlements WHERE status = 'settled'`,
  );
  for (const { id, events } of rows) {
    const { certificate_id: certificate } = await client.settlements.get(id);
    if (certificate === null) faults.push(`${id} has no certificate`);
    if (events < OWN_EVENTS) faults.push(`${id} has ${events} events`);
  }
  const from = new Date(Date.now() - RETENTION.events.daysMin * DAY_MS).toISOString();
  const young = await owner.query(
    `SELECT event_id AS id, EXISTS (SELECT FROM webhook_deliveries d WHERE d.event_id = e.event_id) AS has FROM events e
     WHERE created_at >= $1 AND type = 'settlement.settled' ORDER BY created_at LIMIT 100`,
    [from],
  );
  for (const { id, has } of young.rows) {
    const answered = await request(`${apiUrl}/v1/events/${id}`, { headers: { 'x-api-key': apiKey } });
    await answered.body.dump();
    if (answered.statusCode !== OK || !has) faults.push(`the event ${id} is answered with ${answered.statusCode}`);
  }
  if (young.rows.length < 100) faults.push(`only ${young.rows.length} events of the last 90 days are there`);
  return faults;
}
