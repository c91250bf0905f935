/**
 * The service in processes of its own, on the servers of a running stack: a database and a namespace that are made for
 * the run and deleted after it. So no limit and no earlier data is in the figures, and nothing of theirs stays.
 */
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { msToTs } from '@temporalio/common/lib/time.js';
import pg from 'pg';
import { loadConfig } from '../../config.ts';
import { migrate } from '../../db/migrate.ts';
import { localDirectory } from '../../process/place.ts';
import { findRunningStack } from '../../process/running-stack.ts';
import { connectTemporal, ensureSearchAttributes, type TemporalClient } from '../../process/temporal.ts';
import { borrowStack } from '../../scripts/stack/borrowed.ts';
import { logDirectory } from '../../scripts/stack/embedded.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { freshLog, startService } from '../../scripts/stack/service.ts';
import type { Member } from '../../scripts/stack/supervisor.ts';
import { workflowBundle } from '../../worker/bundle.ts';

const RETENTION_MS = 86_400_000;
const UNLIMITED_PER_MINUTE = '1000000';

export type Ground = {
  readonly apiUrl: string;
  readonly databaseUrl: string;
  readonly temporal: TemporalClient;
  readonly database: pg.Pool;
  readonly cardprocSecret: string;
  /** Starts a process of this ground; ready once its log has the text. */
  start(name: string, script: string, readyText: string): Promise<Started>;
};

export type Started = {
  readonly pid: number;
  readonly log: string;
  readonly startedAtMs: number;
  stop(): Promise<void>;
};

/** Lends the ground for one benchmark, and takes everything away after it. */
export async function onOwnGround<T>(run: (ground: Ground) => Promise<T>): Promise<T> {
  const stack = await borrowStack(undefined, console.log);
  const undo: (() => Promise<unknown>)[] = [stack.giveBack];
  try {
    return await run(await prepare(undo));
  } finally {
    for (const step of undo.reverse()) await step().catch((error: unknown) => console.error(error));
  }
}

async function prepare(undo: (() => Promise<unknown>)[]): Promise<Ground> {
  const addresses = findRunningStack();
  if (!addresses) throw new Error('The stack that was borrowed is gone.');
  const id = randomBytes(4).toString('hex');
  const databaseUrl = await createDatabase(addresses.databaseUrl, `bench_${id}`, undo);
  const apiPort = await freePort();
  const cardprocSecret = randomBytes(32).toString('hex');
  const env = {
    ...process.env,
    RUNTIME_ENVIRONMENT: 'local-sandbox',
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: addresses.temporalAddress,
    TEMPORAL_NAMESPACE: `bench-${id}`,
    PORT: String(apiPort),
    METRICS_PORT: '',
    RATE_LIMIT_PER_MINUTE: UNLIMITED_PER_MINUTE,
    CARDPROC_WEBHOOK_SECRET: cardprocSecret,
    WEBHOOK_ALLOW_LOCAL_TARGETS: 'true',
  };
  const temporal = await createNamespace(env, undo);
  const database = new pg.Pool({ connectionString: databaseUrl, max: 2 });
  database.on('error', () => undefined);
  undo.push(() => database.end());
  await workflowBundle();
  const start = async (name: string, script: string, readyText: string): Promise<Started> => {
    const logFile = freshLog(path.join(logDirectory, `bench-${name}.log`));
    const members: Member[] = [];
    const startedAtMs = Date.now();
    let lastLog = '';
    const isReady = (log: string): boolean => {
      lastLog = log;
      return log.includes(readyText);
    };
    await startService({ name, run: script, env, logFile, isReady }, async (member) => {
      members.push(member);
      undo.push(member.stop);
    });
    const stop = async (): Promise<void> => {
      await Promise.all(members.map((member) => member.stop()));
    };
    return { pid: members[0]?.record.pid ?? 0, log: lastLog, startedAtMs, stop };
  };
  return { apiUrl: `http://127.0.0.1:${apiPort}`, databaseUrl, temporal, database, cardprocSecret, start };
}

async function createDatabase(serverUrl: string, name: string, undo: (() => Promise<unknown>)[]): Promise<string> {
  const administer = async (statement: string): Promise<void> => {
    const client = new pg.Client({ connectionString: serverUrl });
    await client.connect();
    await client.query(statement).finally(() => client.end());
  };
  await administer(`CREATE DATABASE ${name}`);
  undo.push(() => administer(`DROP DATABASE ${name} WITH (FORCE)`));
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  await migrate(url.href);
  return url.href;
}

async function createNamespace(env: NodeJS.ProcessEnv, undo: (() => Promise<unknown>)[]): Promise<TemporalClient> {
  const temporal = connectTemporal(loadConfig(env, localDirectory));
  const { namespace } = temporal;
  const { workflowService, operatorService } = temporal.client.connection;
  await workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod: msToTs(RETENTION_MS) });
  undo.push(async () => {
    await operatorService.deleteNamespace({ namespace });
    await temporal.close();
  });
  await ensureSearchAttributes(temporal);
  return temporal;
}
