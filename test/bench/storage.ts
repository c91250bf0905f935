/**
 * `storage`: bytes on disk that one more card settlement needs, settled, with one subscriber to all events, by table
 * and index. A table keeps the room of its old row versions and uses it again after a VACUUM. So the second half of the
 * settlements is measured: it finds the room that the first half has left.
 */
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { withReceiver } from '../support/http-server.ts';
import { inParallel } from '../support/parallel.ts';
import { type Bench, count, report, untilNone } from './bench.ts';
import { untilSettled } from './drive.ts';
import { createPayer, type Payer } from './payer.ts';
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
      const sizesOf = async (statement: string) => {
        const { rows } = await stack.database.query<Size>(statement);
        return new Map(rows.map((size) => [size.name, size]));
      };
      const half = Math.ceil(settlements / 2);
      const [first, second] = await withReceiver(async (url) => {
        const payer = await createPayer(stack);
        await payer.subscribe(url);
        const settleHalf = async () => {
          await settleAll(stack, payer, half);
          await stack.database.query('VACUUM (ANALYZE)');
          return { tables: await sizesOf(TABLES), indexes: await sizesOf(INDEXES) };
        };
        return [await settleHalf(), await settleHalf()];
      });
      const tables = growth(first.tables, second.tables, half);
      const indexes = growth(first.indexes, second.indexes, half);
      const all = tables.reduce((sum, { bytes }) => sum + bytes, 0);
      const shown = (sizes: readonly Size[]): string[][] =>
        sizes
          .filter(({ bytes }) => bytes >= SHOWN_BYTES_MIN)
          .map(({ name, bytes, rows }) => [name, bytes.toFixed(0), rows.toFixed(1)]);
      const updated = tables
        .filter(({ updates = 0 }) => updates >= 1)
        .map(({ name, updates = 0, hot = 0 }) => [name, updates.toFixed(1), (hot / updates).toFixed(2)]);
      report(printer, 'storage', [
        { head: ['table with its indexes', 'bytes', 'rows'], rows: [['all', all.toFixed(0), ''], ...shown(tables)] },
        { head: ['index', 'bytes', 'times read'], rows: shown(indexes) },
        { head: ['table', 'updates', 'of them heap-only'], rows: updated },
      ]);
      return EXIT.done;
    }),
});

/** What each of `count` settlements added, the largest first. */
function growth(before: ReadonlyMap<string, Size>, after: ReadonlyMap<string, Size>, count: number): Size[] {
  const sizes = [...after.values()].map((now) => {
    const then = before.get(now.name);
    const grown = (part: 'bytes' | 'rows' | 'updates' | 'hot') => ((now[part] ?? 0) - (then?.[part] ?? 0)) / count;
    return {
      name: now.name,
      bytes: grown('bytes'),
      rows: grown('rows'),
      updates: grown('updates'),
      hot: grown('hot'),
    };
  });
  return sizes.sort((a, b) => b.bytes - a.bytes);
}

async function settleAll(stack: BenchStack, { settle, pay }: Payer, settlements: number): Promise<void> {
  const ids = await inParallel(Array(settlements).keys(), AT_ONCE, settle);
  const moving = `SELECT FROM settlements WHERE status = 'accepted' LIMIT 1`;
  await untilNone(stack.database, 'wait of all for money', moving, SETTLED);
  await inParallel(ids, AT_ONCE, pay);
  await untilSettled(stack.database, SETTLED);
}
