/** The worker for the bare workflow, with as many database connections as the service's worker. */
import path from 'node:path';
import { NativeConnection, Worker } from '@temporalio/worker';
import pg from 'pg';

const POOL_SIZE_MAX = 20;

const env = process.env;
const pool = new pg.Pool({ connectionString: env['MIGRATION_DATABASE_URL'], max: POOL_SIZE_MAX });
await pool.query('CREATE TABLE bare_step (id text, step integer, PRIMARY KEY (id, step))');

const activities = {
  store: async (id: string, step: number): Promise<void> => {
    await pool.query('INSERT INTO bare_step VALUES ($1, $2) ON CONFLICT DO NOTHING', [id, step]);
  },
};
export type BareActivities = typeof activities;

const connection = await NativeConnection.connect({ address: env['TEMPORAL_ADDRESS'] ?? '' });
const worker = await Worker.create({
  connection,
  namespace: env['TEMPORAL_NAMESPACE'] ?? '',
  taskQueue: 'bench-bare',
  workflowsPath: path.join(import.meta.dirname, 'bare-workflow.ts'),
  activities,
});
const running = worker.run();
console.log('bare worker ready for the benchmark');
await running;
await Promise.all([connection.close(), pool.end()]);
