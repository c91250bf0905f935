/** The operators' commands, run in the test's process. */
import { eq } from 'drizzle-orm';
import type { Database } from '../../db/client.ts';
import { addOperator } from '../../db/commands/operator.ts';
import { checkServiceKeys } from '../../db/queries/service-key.ts';
import { auditEntries } from '../../db/schema/index.ts';
import { operatorName } from '../../domain/gate.ts';
import { RETENTION } from '../../domain/retention.ts';
import type { OpsDeps } from '../../ops/command.ts';
import type { ExitCode } from '../../ops/command-line/program.ts';
import type { KeyRing } from '../../ops/keys.ts';
import { runOps } from '../../ops/main.ts';
import { hashToken } from '../../ops/operator-token.ts';
import { serviceKeysOf } from '../../process/key-check.ts';
import { TEST_KEYS } from './api.ts';

export type OpsResult = {
  readonly exitCode: ExitCode;
  /** The lines on stdout. */
  readonly printed: readonly string[];
  /** The lines on stderr. */
  readonly warned: readonly string[];
};

/** @param deps without `client`, a command that needs Temporal fails */
export function createOps(db: Database, deps: Partial<OpsDeps> = {}) {
  return async (...args: string[]): Promise<OpsResult> => {
    const printed: string[] = [];
    const warned: string[] = [];
    const exitCode = await runOps(
      {
        runtime: 'local-sandbox',
        db,
        keys: TEST_KEYS,
        rateLimitPerMinute: 1_200,
        retentionDays: { events: RETENTION.events.daysMin, quotes: RETENTION.quotes.daysMin },
        client: () => {
          throw new Error('the command needs Temporal');
        },
        // Without Temporal, every workflow counts as running.
        runs: { findRunning: async (workflowIds) => new Set(workflowIds) },
        listRuns: async () => [],
        describeRun: async () => ({ runId: 'run-1', status: 'running', startedAt: new Date(0), activities: [] }),
        temporalHealth: async () => ({ status: 'up', cause: null }),
        unservedQueues: async () => [],
        now: () => new Date(),
        ...deps,
        print: (line) => printed.push(line),
        warn: (line) => warned.push(line),
      },
      args,
    );
    return { exitCode, printed, warned };
  };
}

/** As a process does that starts with these keys. */
export const recordKeys = (db: Database, keys: KeyRing = TEST_KEYS) =>
  checkServiceKeys(db, serviceKeysOf(keys), new Date());

/** The error of a call that Temporal does not answer, as gRPC gives it. */
export const temporalSilence = (code = 14): Error =>
  Object.assign(new Error('grpc'), { code, details: 'No connection established', metadata: {} });

/** The audit entries of an object. */
export async function listAudit(db: Database, objectId: string) {
  const rows = await db.select().from(auditEntries).where(eq(auditEntries.objectId, objectId));
  return rows.map(({ orgId, action, operator, note }) => ({ orgId, action, operator, note }));
}

/**
 * The commands in a remote runtime: each of these operators has a token, and each command gets that of its operator.
 */
export async function createRemoteOps(db: Database, deps: Partial<OpsDeps>, names: readonly string[]) {
  const tokens = new Map(names.map((name) => [name, `op_${name.padEnd(43, '-')}`]));
  for (const [name, token] of tokens) {
    const act = { operator: 'test', note: 'test' };
    const commit = { db, now: () => new Date(), dispatcher: { nudge: () => undefined } };
    const hash = hashToken(TEST_KEYS.apiKeyPeppers[0], token);
    await addOperator(commit, name, { hash, requireAdder: async () => undefined }, act);
  }
  return (...args: string[]): Promise<OpsResult> => {
    const operatorToken = tokens.get(operatorName(args[args.indexOf('--operator') + 1] ?? ''));
    return createOps(db, { ...deps, operatorToken })(...args);
  };
}
