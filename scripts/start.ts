/**
 * `npm start`: the whole service on one machine. It also starts a PostgreSQL and a Temporal, unless DATABASE_URL and
 * TEMPORAL_ADDRESS name others. Ctrl-C stops everything in order. After a kill, the next start recovers.
 */
import { runStackProgram } from './stack/lifetime.ts';
import { runStack } from './stack/run.ts';

const description = 'Starts PostgreSQL, Temporal, the worker and the API on this machine. Ctrl-C stops all in order.';

await runStackProgram({ name: 'start', description, takes: {} }, (env) => runStack(env));
