/** `npm run migrate`: brings the configured database to the current schema, then exits. */
import { loadConfig } from '../config.ts';
import { migrate } from '../db/migrate.ts';

await migrate(loadConfig().databaseUrl);
