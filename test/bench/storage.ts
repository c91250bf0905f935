/**
 * `storage`: bytes on disk of a card settlement that settled, with one subscriber to all events, by table and index.
 * PostgreSQL keeps what it has allocated, so many settlements are needed for a figure of one.
 */
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { type Bench, count, inParallel, report } from './bench.ts';
import { createPayer } from './payer.ts';
import { startReceiver } from './receiver.ts';
import { type BenchStack, withBenchStack } from './stack.ts';
import { waitUntil } from './wait.ts';

const AT_ONCE = 16;
const NO_CONTENT = 204;
const WAIT_MS = 900_000;
/** Smaller ones are left out of the tables, and are in the sum. */
const SHOWN_BYTES_MIN = 60;

export const storage: Bench = command({
  name: 'storage',
  description: 'Bytes on disk of a settlement, by table and index.',
  takes: { settlements: count('--settlements <count>', 'how many are settled', 2_000) },
  run: (printer: Printer, { settlements }) =>
    withBenchStack(async (stack) => {
      await stack.start('api', 'api/main.ts', 'API ready');
      await stack.start('worker', 'worker/main.ts', 'worker ready');
      const receiver = await startReceiver(() => NO_CONTENT);
      try {
        await settleAll(stack, receiver.base, settlements);
      } finally {
        receiver.close();
      }
      const [tables, indexes] = [await sizes(stack, TABLES), await sizes(stack, INDEXES)];
      const each = (bytes: number): string => (bytes / settlements).toFixed(0);
      const rowsOf = (found: readonly Size[]): string[][] =>
        found
          .filter(({ bytes }) => bytes / settlements >= SHOWN_BYTES_MIN)
          .map(({ name, bytes, rows }) => [name, each(bytes), (rows / settlements).toFixed(1)]);
      const sum = tables.reduce((total, { bytes }) => total + bytes, 0);
      report(
        printer,
        'storage',
        [
          { head: ['table with its indexes', 'bytes', 'rows'], rows: [['all', each(sum), ''], ...rowsOf(tables)] },
          { head: ['index', 'bytes', 'times read'], rows: rowsOf(indexes) },
        ],
        { settlements, tables, indexes },
      );
      return EXIT.done;
    }),
});

async function settleAll(stack: BenchStack, subscriberUrl: string, settlements: number): Promise<void> {
  const payer = await createPayer(stack, 'Marcia Brown');
  await payer.subscribe(subscriberUrl);
  const counted = async (statement: string) => Number((await stack.database.query(statement)).rows[0].count);
  const ids: string[] = [];
  await inParallel(settlements, AT_ONCE, async () => void ids.push(await payer.settle()));
  const waiting = `SELECT count(*) FROM settlements WHERE status = 'awaiting_funds'`;
  await waitUntil('every wait for money', async () => (await counted(waiting)) === settlements, { timeoutMs: WAIT_MS });
  await inParallel(settlements, AT_ONCE, (index) => payer.pay(ids[index] ?? ''));
  const left = `SELECT (SELECT count(*) FROM settlements WHERE status <> 'settled')
    + (SELECT count(*) FROM webhook_deliveries WHERE status = 'pending') + (SELECT count(*) FROM outbox) AS count`;
  await waitUntil('the end of all', async () => (await counted(left)) === 0, { timeoutMs: WAIT_MS });
}

type Size = { readonly name: string; readonly bytes: number; readonly rows: number };

const TABLES = `SELECT c.relname AS name, pg_total_relation_size(c.oid)::float8 AS bytes, n_live_tup::float8 AS rows
  FROM pg_class c JOIN pg_stat_user_tables s ON s.relid = c.oid WHERE schemaname = 'public' ORDER BY bytes DESC`;
const INDEXES = `SELECT indexrelname AS name, pg_relation_size(indexrelid)::float8 AS bytes, idx_scan::float8 AS rows
  FROM pg_stat_user_indexes WHERE schemaname = 'public' ORDER BY bytes DESC`;

const sizes = async ({ database }: BenchStack, statement: string): Promise<Size[]> => {
  await database.query('VACUUM (ANALYZE)');
  return (await database.query<Size>(statement)).rows;
};
