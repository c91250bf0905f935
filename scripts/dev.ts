/**
 * `npm run dev`: the stack of `npm start`, whose API and worker are built and started again when a source changes.
 * PostgreSQL and Temporal stay, and open settlements go on.
 */
import { restartOnChange } from './dev/restart.ts';
import { runStackProgram } from './stack/lifetime.ts';
import { runStack } from './stack/run.ts';

const description =
  'As npm start, and starts the API and the worker again when their sources change. Ctrl-C stops all.';

await runStackProgram({ name: 'dev', description, takes: {} }, (env) => runStack(env, restartOnChange));
