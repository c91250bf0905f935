/**
 * The one way to change something: a transaction, then a nudge to the dispatcher, which starts or signals the workflows
 * that the transaction wrote to the outbox. A command is a function that takes `deps` and calls `commit` once for each
 * of its transactions. The files of `db/queries` take a `tx` instead: they run inside the transaction of a command.
 */
import type { Crash, Transaction } from '../../domain/crash-point.ts';
import type { RuntimeEnvironment } from '../../domain/runtime.ts';
import type { Database, Tx } from '../client.ts';
import type { Sealer } from '../seal.ts';

/** What commands use. Each command declares the part that it needs, by `Pick`. */
export type CommandDeps = {
  readonly db: Database;
  readonly sealer: Sealer;
  readonly runtime: RuntimeEnvironment;
  readonly now: () => Date;
  /** Says that something was committed. Never waits and never throws. */
  readonly dispatcher: { nudge(): void };
  /** Only under the torture suite. */
  readonly crash?: Crash | undefined;
};

/** What `commit` needs, and therefore every command. */
export type CommitDeps = Pick<CommandDeps, 'db' | 'dispatcher' | 'crash'>;

/**
 * For a process without a dispatcher of its own, such as an operator's command: the dispatchers of the API and of the
 * worker look for new outbox rows every second.
 */
export const NO_DISPATCHER: CommandDeps['dispatcher'] = { nudge: () => undefined };

/**
 * Runs a transaction at READ COMMITTED and nudges the dispatcher once it has committed.
 *
 * @param name also names the transaction's two crash points
 * @returns what `run` returns
 * @throws whatever `run` or the database throws; then nothing is written and nothing is dispatched. One exception: if
 *   the connection breaks during COMMIT, it is unknown whether the transaction was committed (contract §2: 503).
 */
export async function commit<Result>(
  { db, dispatcher, crash }: CommitDeps,
  name: Transaction,
  run: (tx: Tx) => Promise<Result>,
): Promise<Result> {
  const result = await db.transaction(async (tx) => {
    const value = await run(tx);
    crash?.(`${name}:before_commit`);
    return value;
  });
  crash?.(`${name}:after_commit`);
  dispatcher.nudge();
  return result;
}

/**
 * As `commit`, for a change that is one statement: PostgreSQL runs it as a transaction of its own, which saves the two
 * round trips of BEGIN and COMMIT. The first crash point comes before the statement: a process that dies there has
 * written nothing.
 *
 * @param run runs exactly one statement that writes
 */
export async function commitStatement<Result>(
  { db, dispatcher, crash }: CommitDeps,
  name: Transaction,
  run: (db: Database) => Promise<Result>,
): Promise<Result> {
  crash?.(`${name}:before_commit`);
  const result = await run(db);
  crash?.(`${name}:after_commit`);
  dispatcher.nudge();
  return result;
}
