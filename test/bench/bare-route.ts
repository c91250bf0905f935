/**
 * The least that routes cost, with as many database connections as the API has: one that answers without a statement,
 * one that selects a row by its key, and one that looks up a key and inserts a row.
 */
import Fastify from 'fastify';
import pg from 'pg';

const POOL_SIZE_MAX = 20;

const pool = new pg.Pool({ connectionString: process.env['MIGRATION_DATABASE_URL'], max: POOL_SIZE_MAX });
await pool.query('CREATE TABLE bare_key (hash text PRIMARY KEY, org_id text NOT NULL)');
await pool.query('CREATE TABLE bare_row (id text PRIMARY KEY, org_id text NOT NULL, body jsonb NOT NULL)');
await pool.query("INSERT INTO bare_key VALUES ('bench', 'bench')");

const app = Fastify();
app.post('/bare', async (request, reply) => {
  const { rows } = await pool.query<{ org_id: string }>('SELECT org_id FROM bare_key WHERE hash = $1', [
    request.headers['x-api-key'],
  ]);
  await pool.query('INSERT INTO bare_row VALUES ($1, $2, $3)', [
    request.headers['idempotency-key'],
    rows[0]?.org_id,
    request.body,
  ]);
  return reply.code(202).send({ accepted: true });
});
app.get('/bare', async () => ({ answered: true }));
app.get<{ Params: { id: string } }>('/bare/:id', async (request, reply) => {
  const { rows } = await pool.query<{ id: string; body: object }>({
    name: 'select',
    text: 'SELECT id, body FROM bare_row WHERE id = $1',
    values: [request.params.id],
  });
  return rows[0] ?? reply.code(404).send();
});
process.once('SIGTERM', async () => {
  await app.close();
  await pool.end();
});
console.log(`listening on ${await app.listen({ host: '127.0.0.1', port: 0 })} for the benchmark`);
