/**
 * Every statement that the service sends is explained as it runs, on data that one organization has a third of. Each
 * reads by index, and a bounded number of rows, however much is kept. `PLAN_SETTLEMENTS=1000000` fills as many.
 */
import path from 'node:path';
import { describe, expect } from 'vitest';
import { statementTexts } from '../../db/statement.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { createTestApi } from '../support/api.ts';
import { countCalls } from '../support/calls.ts';
import { FILE, withDatabase } from '../support/fixture.ts';
import { sourceFiles } from '../support/source.ts';
import { fillService } from './filled-service.ts';
import { playOperators } from './operator-flow.ts';
import {
  playConsumer,
  playKeys,
  playLists,
  playOperations,
  playSettlements,
  playVerifications,
} from './partner-flow.ts';
import { blocksRead, collectPlans, nodesOf, type Plan, reportPlans, rowsRead, scansOf } from './plan.ts';
import { GUARDS, isUncalled, ROWS_MAX, SEARCHES, SMALL_TABLES } from './plan-exception.ts';
import { playDeliveries, playDispatch, playRare, playUpkeep } from './process-flow.ts';

const SETTLEMENTS = Number(process.env['PLAN_SETTLEMENTS'] ?? 20_000);
/**
 * A scan reads this many blocks for a row, for each time that it begins, and in all: it also meets earlier versions of
 * rows, until no transaction can see them. Another transaction, such as autovacuum's, keeps them for longer.
 */
const BLOCKS = { ofRow: 4, ofLoop: 6, more: 100 } as const;

/** A partition. One that is empty yet may be read as a whole: it has no page. */
const MONTH = /_(20\d\d_\d\d|first)$/;

const test = withDatabase().extend('played', FILE, async ({ database }, { onCleanup }) => {
  const large = await fillService(database, SETTLEMENTS);
  await reportPlans(database);
  const stopCounting = await countCalls();
  const api = await createTestApi({ database: { ...database, drop: async () => undefined } });
  onCleanup(() => api.close());
  const plans = collectPlans(api.connection.pool);
  await playOperations(api);
  await playLists(api, large);
  await playSettlements(api, large);
  await playVerifications(api, large);
  await playKeys(api);
  await playConsumer(api);
  await playDeliveries(api, large);
  await playDispatch(api);
  await playUpkeep(api);
  await playRare(api);
  await playOperators(api, large);
  return { plans, called: await stopCounting() };
});

/** A statement, however many values its lists have. */
const shapeOf = (text: string): string => text.replaceAll(/\s+/g, ' ').replaceAll(/\$\d+(, \$\d+)+/g, '$…');

const searchOf = ({ text }: Plan) => SEARCHES.find(({ part }) => shapeOf(text).includes(part));

/** Each statement for which `faultOf` finds something, once. */
function faultsOf(plans: readonly Plan[], faultOf: (plan: Plan) => string | undefined): string[] {
  const found = new Map<string, string>();
  for (const plan of plans) {
    const fault = faultOf(plan);
    if (fault !== undefined) found.set(shapeOf(plan.text), fault);
  }
  return [...found].map(([text, fault]) => `${fault}: ${text}`);
}

describe('every statement', () => {
  test('reads tables that grow by an index', ({ played: { plans } }) => {
    const faults = faultsOf(plans, (plan) => {
      if (searchOf(plan)) return undefined;
      const scan = scansOf(plan).find(
        (node) =>
          node['Node Type'] === 'Seq Scan' &&
          !SMALL_TABLES.includes(node['Relation Name'] ?? '') &&
          !(MONTH.test(node['Relation Name'] ?? '') && rowsRead(node) === 0),
      );
      return scan && `reads all of ${scan['Relation Name']}`;
    });
    expect(faults).toEqual([]);
  });

  test('reads a bounded number of rows, whoever asks and however much is kept', ({ played: { plans } }) => {
    const faults = faultsOf(plans, (plan) => {
      const rows = scansOf(plan).reduce((sum, node) => sum + rowsRead(node), 0);
      const { rowsMax = ROWS_MAX } = searchOf(plan) ?? {};
      return rows > rowsMax ? `${Math.round(rows)} rows` : undefined;
    });
    expect(faults).toEqual([]);
  });

  test('reads no more of an index than the rows that it finds', ({ played: { plans } }) => {
    const faults = faultsOf(plans, (plan) => {
      const scan = scansOf(plan).find(
        (node) => blocksRead(node) > BLOCKS.more + BLOCKS.ofLoop * node['Actual Loops'] + BLOCKS.ofRow * rowsRead(node),
      );
      return scan && `${blocksRead(scan)} blocks of ${scan['Index Name'] ?? scan['Relation Name']}`;
    });
    expect(faults).toEqual([]);
  });

  test('reads each list that it is given once, and not once for each row', ({ played: { plans } }) => {
    const faults = faultsOf(plans, ({ root }) => {
      const scan = nodesOf(root).find((node) => node['Node Type'] === 'Function Scan' && node['Actual Loops'] > 1);
      return scan && `reads ${scan.Alias} ${scan['Actual Loops']} times`;
    });
    expect(faults).toEqual([]);
  });

  test('was sent: a new one needs a step in one of the flows', async ({ played: { plans, called } }) => {
    const files = sourceFiles('.ts').filter((file) => /^db\/(queries|commands)\//.test(file));
    const uncalled: string[] = [];
    for (const file of files) {
      const exported: Record<string, unknown> = await import(path.join(repositoryRoot, file));
      for (const [name, value] of Object.entries(exported))
        if (typeof value === 'function' && !called.get(file)?.has(name)) uncalled.push(`${file} ${name}`);
    }
    expect(uncalled.filter((name) => !isUncalled(name))).toEqual([]);
    const texts = new Set(plans.map(({ text }) => text));
    expect([...statementTexts].filter(([, text]) => !texts.has(text)).map(([name]) => name)).toEqual([]);
  });
});

test('every index is read by a statement, or guards what it is unique for', async ({ played: { plans }, owner }) => {
  const used = new Set(
    plans.flatMap(({ root }) =>
      nodesOf(root).flatMap((node) => [node['Index Name'] ?? '', ...(node['Conflict Arbiter Indexes'] ?? [])]),
    ),
  );
  // With those of a table's partitions. A partition's own index has no table's, and is unique.
  const { rows } = await owner.pool.query<{ name: string; names: string[] }>(
    `SELECT i.relname AS name, ARRAY(SELECT relid::regclass::text FROM pg_partition_tree(indexrelid)) || i.relname::text AS names
     FROM pg_index JOIN pg_class i ON i.oid = indexrelid JOIN pg_class t ON t.oid = indrelid
     WHERE t.relnamespace = 'public'::regnamespace AND NOT indisprimary AND NOT t.relispartition ORDER BY 1`,
  );
  const unused = rows.filter(({ names }) => !names.some((name) => used.has(name))).map(({ name }) => name);
  expect(unused.filter((name) => !GUARDS.includes(name))).toEqual([]);
});
