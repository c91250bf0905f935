/**
 * The plans by which PostgreSQL carries out what a service in this process sends, with the rows and blocks that each
 * part of them read. `auto_explain` reports every statement as it runs, also those of triggers, foreign keys and
 * functions.
 */
import type { Pool, PoolClient } from 'pg';
import { onDatabase } from '../support/connection.ts';
import type { TestDatabase } from '../support/postgres.ts';

export type PlanNode = {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly Alias?: string;
  readonly 'Conflict Arbiter Indexes'?: readonly string[];
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly PlanNode[];
};
export type Plan = { readonly text: string; readonly root: PlanNode };

const SETTINGS = {
  'auto_explain.log_min_duration': '0',
  'auto_explain.log_analyze': 'on',
  'auto_explain.log_buffers': 'on',
  'auto_explain.log_timing': 'off',
  'auto_explain.log_nested_statements': 'on',
  'auto_explain.log_format': 'json',
  'auto_explain.log_level': 'notice',
};

/** From now on, each new connection to the database is told the plan of each statement that it runs. */
export async function reportPlans({ databaseUrl, migrationUrl }: TestDatabase): Promise<void> {
  const name = new URL(databaseUrl).pathname.slice(1);
  await onDatabase(migrationUrl, async (client) => {
    await client.query(`ALTER DATABASE ${name} SET session_preload_libraries = 'auto_explain'`);
    await client.query(`LOAD 'auto_explain'`);
    for (const [setting, value] of Object.entries(SETTINGS))
      await client.query(`ALTER DATABASE ${name} SET ${setting} = '${value}'`);
  });
}

/** Collects the plans of what the pool's connections run from now on. */
export function collectPlans(pool: Pool): Plan[] {
  const plans: Plan[] = [];
  const watched = new Set<PoolClient>();
  pool.on('acquire', (client) => {
    if (watched.has(client)) return;
    watched.add(client);
    client.on('notice', ({ message = '' }) => {
      const at = message.indexOf('plan:\n');
      if (at < 0) return;
      const { 'Query Text': text, Plan: root } = JSON.parse(message.slice(at + 'plan:\n'.length));
      plans.push({ text, root });
    });
  });
  return plans;
}

export const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

const isScan = (node: PlanNode): boolean => node['Relation Name'] !== undefined || node['Index Name'] !== undefined;

/** The scans of tables and indexes. What a statement changes is no scan. */
export const scansOf = ({ root }: Plan): PlanNode[] =>
  nodesOf(root).filter((node) => isScan(node) && node['Node Type'].includes('Scan'));

/** The rows or index entries that a part of a plan read. */
export const rowsRead = (node: PlanNode): number =>
  (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)) *
  node['Actual Loops'];

export const blocksRead = (node: PlanNode): number => node['Shared Hit Blocks'] + node['Shared Read Blocks'];
