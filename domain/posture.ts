/** The line about the runtime that the terminal and every page show first. */
import type { RuntimeEnvironment } from './runtime.ts';

export const POSTURE: Readonly<Record<RuntimeEnvironment, string>> = {
  'local-sandbox': 'LOCAL SANDBOX: simulation only, no value moves, no rail is live',
  'remote-sandbox': 'REMOTE SANDBOX: every step that moves or simulates value is closed',
  production: 'PRODUCTION POSTURE: every step that moves value is closed, no rail is live',
};
