/**
 * One more API of a stack, in a process of its own, so that a test can kill it. It shares the stack's database,
 * Temporal and secrets. The simulator posts its events to the stack's own API, which stays up.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { repositoryRoot } from '../../process/local/place.ts';
import { compiledPrograms } from '../../scripts/stack/compiled.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { answersReady } from '../../scripts/stack/product.ts';
import { TEST_SECRETS } from './api.ts';
import { stretched } from './patience.ts';
import type { TestStack } from './stack.ts';
import { testDevServer } from './temporal.ts';

export type ApiProcess = {
  readonly baseUrl: string;
  /** Sends SIGKILL and resolves when the process has ended: nothing is flushed. */
  kill(): Promise<void>;
  /** Starts the API again, at the same address, and resolves when it is ready. */
  start(): Promise<void>;
};

const READY_TIMEOUT_MS = stretched(60_000);
const READY_POLL_MS = 50;

/** Sign up over HTTP to call it: keys that the stack's own API has issued have another pepper. */
export async function startApiProcess(stack: TestStack): Promise<ApiProcess> {
  const [{ api: program }, port, { address }] = await Promise.all([
    compiledPrograms(['api'], 'with packages'),
    freePort(),
    testDevServer(),
  ]);
  const baseUrl = `http://127.0.0.1:${port}`;
  const env = {
    ...process.env,
    ...secrets(),
    RUNTIME_ENVIRONMENT: 'local-sandbox',
    DATABASE_URL: stack.api.databaseUrl,
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: stack.namespace,
    PORT: String(port),
    WEBHOOK_ALLOW_LOCAL_TARGETS: 'true',
    RATE_LIMIT_PER_MINUTE: '1000000',
    LOG_LEVEL: 'error',
  };
  let child: ChildProcess | undefined;
  const kill = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  const start = async (): Promise<void> => {
    child = spawn(process.execPath, [program], { cwd: repositoryRoot, env, stdio: ['ignore', 'ignore', 'inherit'] });
    const end = Date.now() + READY_TIMEOUT_MS;
    while (!(await answersReady(baseUrl))) {
      if (child.exitCode !== null) throw new Error('the API has ended');
      if (Date.now() > end) throw new Error('the API did not become ready');
      await delay(READY_POLL_MS);
    }
  };
  try {
    await start();
  } catch (error) {
    await kill();
    throw error;
  }
  return { baseUrl, kill, start };
}

const named = ({ id, key }: { readonly id: string; readonly key: Buffer }) => `${id}:${key.toString('base64')}`;

const secrets = () => ({
  API_KEY_PEPPER: randomBytes(32).toString('base64'),
  ENCRYPTION_KEYS: named(TEST_SECRETS.encryption),
  CERTIFICATE_SIGNING_KEY: named(TEST_SECRETS.signing),
  CARDPROC_WEBHOOK_SECRET: TEST_SECRETS.cardproc,
  BANKLEDGER_WEBHOOK_SECRET: TEST_SECRETS.bankledger,
  IDVERIFY_WEBHOOK_SECRET: TEST_SECRETS.idverify,
});
