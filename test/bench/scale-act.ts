/** What `scale` measures on both databases, and the most that each may cost beside a million settlements. */
import { sql } from 'drizzle-orm';
import { createClient } from '../../clients/typescript/index.ts';
import { connect } from '../../db/client.ts';
import { newId } from '../../db/id.ts';
import { countStates } from '../../db/queries/metric.ts';
import { claimOutbox, deleteOutbox } from '../../db/queries/outbox.ts';
import { SANDBOX_NAMES } from '../../domain/sandbox/input.ts';
import type { Printer } from '../../ops/command-line/program.ts';
import { createOps } from '../support/ops.ts';
import { inParallel } from '../support/parallel.ts';
import { until } from '../support/wait.ts';
import { UNDISPATCHED } from './accept.ts';
import { type Cell, ratios, spreadOf, type Table, untilNone } from './bench.ts';
import { type Contender, compare, loadHttp, type Turn } from './contender.ts';
import { type Processes, startCpu } from './cpu.ts';
import { createPayer } from './payer.ts';
import type { BenchStack, Product } from './stack.ts';

const CONNECTIONS = 4;
const TURN_MS = 3_000;
/** Of a turn: settlements that are paid. */
const PAID = 60;
/** Of a turn: test events. Processor time is counted in steps of 10 ms, so that few of them would give no ratio. */
const DELIVERED = 300;
/** Rows that a turn dispatches, and that one statement claims. */
const DISPATCHED = 5_000;
const CLAIMED = 100;
const COMMANDS = 10;
const DONE = { timeoutMs: 180_000, everyMs: 25 };

const AT_MOST = {
  accept: 1.1,
  'read of a settlement': 1.1,
  'from the event to settled': 1.1,
  'dispatch: claim and delete': 1.1,
  'delivery of a test event': 1.1,
  'metrics scrape': 2,
  'ops waiting': 2,
  'ops stuck': 2,
} as const;

type Name = keyof typeof AT_MOST;
/** @returns how many were done */
type Act = () => Promise<number>;
export type Acts = {
  readonly acts: Readonly<Record<Name, Act>>;
  /** Whose processor time is counted. */
  readonly processes: Processes;
};

/** @param subscriberUrl an endpoint that answers at once */
export async function createActs(stack: BenchStack, { processes }: Product, subscriberUrl: string): Promise<Acts> {
  const { database, apiUrl } = stack;
  const { db } = connect(stack.databaseUrl, { poolSizeMax: 1, name: 'bench', onIdleError: () => undefined });
  const rejected = await createPayer(stack, SANDBOX_NAMES.screeningHit);
  const payer = await createPayer(stack);
  // Of a subscriber: it may repeat a request.
  const { apiKey } = await createPayer(stack);
  const client = createClient({ baseUrl: apiUrl, apiKey });
  const { webhook_id: webhookId } = await client.webhooks.create({ url: subscriberUrl, event_types: ['*'] });
  const settlementId = await rejected.settle();
  const ops = createOps(db);
  const undelivered = `SELECT FROM webhook_deliveries WHERE lane_key IS NOT NULL LIMIT 1`;
  const times = async (act: () => Promise<unknown>, done: number): Promise<number> => {
    for (let time = 0; time < done; time += 1) await act();
    return done;
  };
  const waiting = (wanted: string, ids: readonly string[]) => async () =>
    (await database.query('SELECT FROM settlements WHERE settlement_id = ANY ($1) AND status = $2', [ids, wanted]))
      .rowCount === ids.length;
  const acts: Acts['acts'] = {
    accept: async () => {
      const headers = () => ({
        ...{ 'content-type': 'application/json', 'x-api-key': rejected.apiKey, 'idempotency-key': newId() },
      });
      const call = { method: 'POST', path: '/v2/settle', status: 202, headers, body: rejected.settleBody } as const;
      const { done } = await loadHttp(apiUrl, call, CONNECTIONS, TURN_MS);
      // Their rejection is a part of what an acceptance costs.
      await untilNone(database, 'end of every settlement', UNDISPATCHED, DONE);
      return done;
    },
    'read of a settlement': async () => {
      const headers = () => ({ 'x-api-key': rejected.apiKey });
      const call = { method: 'GET', path: `/v2/settle/${settlementId}`, status: 200, headers } as const;
      return (await loadHttp(apiUrl, call, CONNECTIONS, TURN_MS)).done;
    },
    'from the event to settled': async () => {
      const ids = await inParallel(Array(PAID).keys(), CONNECTIONS, payer.settle);
      await until('wait for money', waiting('awaiting_funds', ids), DONE);
      await inParallel(ids, CONNECTIONS, payer.pay);
      await until('end', waiting('settled', ids), DONE);
      return PAID;
    },
    'dispatch: claim and delete': async () => {
      // In one transaction, so that no dispatcher of the service sees the rows.
      await db.transaction(async (tx) => {
        await tx.execute(sql`
          INSERT INTO outbox (kind, object_id, context, request_id)
          SELECT 'settlement', 'bench ' || n, '{}', 'bench' FROM generate_series(1, ${DISPATCHED}::int) n`);
        for (let done = 0; done < DISPATCHED; done += CLAIMED) {
          const rows = await claimOutbox(tx, CLAIMED);
          await deleteOutbox(
            tx,
            rows.map(({ outboxId }) => outboxId),
          );
        }
      });
      return DISPATCHED;
    },
    'delivery of a test event': async () => {
      await inParallel(Array(DELIVERED).keys(), CONNECTIONS, () => client.webhooks.sendTestEvent(webhookId));
      await untilNone(database, 'delivery of every event', undelivered, DONE);
      return DELIVERED;
    },
    'metrics scrape': () =>
      times(
        () => countStates(db, { runtime: 'local-sandbox', now: new Date(), retentionDays: { events: 90, quotes: 90 } }),
        COMMANDS,
      ),
    'ops waiting': () => times(() => ops('waiting'), COMMANDS),
    'ops stuck': () => times(() => ops('stuck'), COMMANDS),
  };
  const { Temporal: _notOurs, ...own } = processes;
  return { acts, processes: own };
}

/** Each of them in turn on both databases, in each round. */
export async function compareSides(
  printer: Printer,
  rounds: number,
  sides: Readonly<Record<'empty' | 'large', Acts>>,
): Promise<{ readonly table: Table; readonly areWithin: boolean }> {
  const rows: Cell[][] = [];
  let areWithin = true;
  for (const [name, atMost] of Object.entries(AT_MOST) as [Name, number][]) {
    const contender = ({ acts, processes }: Acts): Contender => ({
      labels: [name],
      take: async (): Promise<Turn> => {
        const [cpu, startedMs] = [startCpu(processes), performance.now()];
        const done = await acts[name]();
        const cpuMs = Object.values(cpu(done)).reduce((sum, ms) => sum + ms, 0);
        return { done, figures: { 'CPU ms': cpuMs, ms: (performance.now() - startedMs) / done } };
      },
    });
    const [empty, large] = [contender(sides.empty), contender(sides.large)];
    const { figuresOf } = await compare(printer, { rounds, labels: ['what'] }, [empty, large]);
    const [none, many] = [figuresOf(empty, 'CPU ms'), figuresOf(large, 'CPU ms')];
    const ratio = ratios(many, none);
    areWithin &&= spreadOf(ratio).median <= atMost;
    rows.push([name, none, many, ratio, String(atMost), ratios(figuresOf(large, 'ms'), figuresOf(empty, 'ms'))]);
    printer.warn(`${name}: ${spreadOf(ratio).median.toFixed(2)}`);
  }
  const head = ['what', 'CPU ms beside none', 'beside many', 'ratio', 'at most', 'ratio of the times'];
  return { table: { head, rows }, areWithin };
}
