/** The least that a storing route costs: a key lookup and one INSERT, with as many database connections as the API. */
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
process.once('SIGTERM', async () => {
  await app.close();
  await pool.end();
});
console.log(`listening on ${await app.listen({ host: '127.0.0.1', port: 0 })} for the benchmark`);
