/**
 * `storage`: bytes on disk of a card settlement that settled, with one subscriber to all events, by table and index.
 * PostgreSQL keeps what it has allocated, so many settlements are needed for a figure of one.
 */
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { withReceiver } from '../support/http-server.ts';
import { inParallel } from '../support/parallel.ts';
import { type Bench, count, report, untilNone } from './bench.ts';
import { untilSettled } from './drive.ts';
import { createPayer } from './payer.ts';
import { type BenchStack, withBenchStack } from './stack.ts';

const AT_ONCE = 16;
const SETTLED = { timeoutMs: 900_000 };
/** Smaller ones are left out of the tables, and are in the sum. */
const SHOWN_BYTES_MIN = 60;

const TABLES = `SELECT c.relname AS name, pg_total_relation_size(c.oid)::float8 AS bytes, n_live_tup::float8 AS rows,
    n_tup_upd::float8 AS updates, n_tup_hot_upd::float8 AS hot
  FROM pg_class c JOIN pg_stat_user_tables s ON s.relid = c.oid WHERE schemaname = 'public' ORDER BY bytes DESC`;
const INDEXES = `SELECT indexrelname AS name, pg_relation_size(indexrelid)::float8 AS bytes, idx_scan::float8 AS rows
  FROM pg_stat_user_indexes WHERE schemaname = 'public' ORDER BY bytes DESC`;

type Size = {
  readonly name: string;
  readonly bytes: number;
  readonly rows: number;
  readonly updates?: number;
  readonly hot?: number;
};

export const storage: Bench = command({
  name: 'storage',
  description: 'Bytes on disk of a settlement, by table and index.',
  takes: { settlements: count('--settlements <count>', 'how many are settled', 2_000) },
  run: (printer: Printer, { settlements }) =>
    withBenchStack(async (stack) => {
      await stack.startProduct();
      await withReceiver((url) => settleAll(stack, url, settlements));
      await stack.database.query('VACUUM (ANALYZE)');
      const sizes = async (statement: string): Promise<string[][]> => {
        const { rows } = await stack.database.query<Size>(statement);
        const all = { name: 'all', bytes: rows.reduce((sum, { bytes }) => sum + bytes, 0), rows: settlements };
        return [all, ...rows]
          .filter(({ bytes }) => bytes / settlements >= SHOWN_BYTES_MIN)
          .map((size) => [size.name, (size.bytes / settlements).toFixed(0), (size.rows / settlements).toFixed(1)]);
      };
      const { rows: tables } = await stack.database.query<Size>(TABLES);
      const updated = tables
        .filter(({ updates = 0 }) => updates >= settlements)
        .map(({ name, updates = 0, hot = 0 }) => [
          name,
          (updates / settlements).toFixed(1),
          (hot / updates).toFixed(2),
        ]);
      report(printer, 'storage', [
        { head: ['table with its indexes', 'bytes', 'rows'], rows: await sizes(TABLES) },
        { head: ['index', 'bytes', 'times read'], rows: await sizes(INDEXES) },
        { head: ['table', 'updates', 'of them heap-only'], rows: updated },
      ]);
      return EXIT.done;
    }),
});

async function settleAll(stack: BenchStack, subscriberUrl: string, settlements: number): Promise<void> {
  const { settle, pay, subscribe } = await createPayer(stack);
  await subscribe(subscriberUrl);
  const ids = await inParallel(Array(settlements).keys(), AT_ONCE, settle);
  const moving = `SELECT FROM settlements WHERE status <> 'awaiting_funds' LIMIT 1`;
  await untilNone(stack.database, 'wait of all for money', moving, SETTLED);
  await inParallel(ids, AT_ONCE, pay);
  await untilSettled(stack.database, SETTLED);
}
