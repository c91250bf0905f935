/** What the service says of itself before anything else, in words: on the terminal and on its pages. */
import type { RuntimeEnvironment } from './runtime.ts';

export const POSTURE: Readonly<Record<RuntimeEnvironment, string>> = {
  'local-sandbox': 'LOCAL SANDBOX: simulation only, no value moves, no rail is live',
  'remote-sandbox': 'REMOTE SANDBOX: every step that moves or simulates value is closed',
  production: 'PRODUCTION POSTURE: every step that moves value is closed, no rail is live',
};
