/**
 * What a distribution by organization would have to change, from the schema: the table of docs/scaling.md. Citus wants
 * the organization in each unique key, and in each foreign key between tables that it distributes.
 */
import { is } from 'drizzle-orm';
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core';
import * as schema from '../../db/schema/index.ts';
import { table } from './document.ts';

const SHARD_KEY = 'org_id';

type Config = ReturnType<typeof getTableConfig>;
type Key = readonly string[];

const carries = (key: Key): boolean => key.includes(SHARD_KEY);
const hasColumn = ({ columns }: Config): boolean => columns.some(({ name }) => name === SHARD_KEY);

/** The columns of each unique key. An expression in an index is shown as such. */
function uniqueKeysOf({ columns, primaryKeys, indexes, uniqueConstraints }: Config): Key[] {
  const nameOf = (column: object): string => ('name' in column ? String(column.name) : 'an expression');
  return [
    ...columns.filter(({ primary }) => primary).map(({ name }) => [name]),
    ...columns.filter(({ isUnique }) => isUnique).map(({ name }) => [name]),
    ...primaryKeys.map((key) => key.columns.map(nameOf)),
    ...uniqueConstraints.map((key) => key.columns.map(nameOf)),
    ...indexes.filter(({ config: { unique } }) => unique).map(({ config }) => config.columns.map(nameOf)),
  ];
}

type Row = { readonly name: string; readonly hasColumn: boolean; readonly keys: Key[]; readonly references: string[] };

/** Tables of organizations: those with the organization's id, and those that refer to one of them. */
function rowsOf(configs: readonly Config[]): Row[] {
  const owned = new Set(configs.filter(hasColumn).map(({ name }) => name));
  const referencesOf = ({ foreignKeys }: Config) =>
    foreignKeys.map((key) => {
      const { columns, foreignTable } = key.reference();
      return { columns: columns.map(({ name }) => name), to: getTableConfig(foreignTable).name };
    });
  for (let before = -1; before < owned.size; ) {
    before = owned.size;
    for (const config of configs) if (referencesOf(config).some(({ to }) => owned.has(to))) owned.add(config.name);
  }
  return configs
    .filter(({ name }) => owned.has(name))
    .map((config) => ({
      name: config.name,
      hasColumn: hasColumn(config),
      keys: uniqueKeysOf(config).filter((key) => !carries(key)),
      references: referencesOf(config)
        .filter(({ columns, to }) => owned.has(to) && !carries(columns))
        .map(({ to }) => to),
    }))
    .sort((a, b) => a.name.localeCompare(b.name));
}

export function shardKeyTable(): string {
  const tables = Object.values(schema).filter((each) => is(each, PgTable));
  const rows = rowsOf(tables.map((each) => getTableConfig(each)));
  const lacking = rows.filter(({ hasColumn, keys, references }) => !hasColumn || keys.length + references.length > 0);
  const summary = `${rows.length - lacking.length} of ${rows.length} tables of organizations meet the rules. The others:`;
  const code = (key: Key) => `\`${key.join(', ')}\``;
  const head = ['table', 'has `org_id`', 'unique keys without it', 'foreign keys without it, to'];
  return `${summary}\n\n${table(
    head,
    lacking.map(({ name, hasColumn, keys, references }) => [
      `\`${name}\``,
      hasColumn ? 'yes' : 'no',
      keys.map(code).join('; '),
      references.map((to) => `\`${to}\``).join('; '),
    ]),
  )}`;
}
