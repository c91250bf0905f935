/**
 * Reads the launch gates before a step that moves value, in the transaction of that step (contract §14). A closed gate
 * is a decision. A store that cannot be read is none: the step throws, its transaction is rolled back, nothing moves,
 * and the orchestrator tries again.
 */
import type { Tx } from '../db/client.ts';
import { holdGates, listGateEvidence } from '../db/queries/gate.ts';
import { DomainError } from '../domain/error.ts';
import { allClosed, type ClosedGate, evaluateGates, forbiddingGates } from '../domain/gate.ts';
import { environmentName, isRemote, type RuntimeEnvironment } from '../domain/runtime.ts';
import type { Settlement } from '../domain/settlement.ts';
import type { ActivityDeps } from './deps.ts';

/**
 * The gates that forbid this settlement's next value step; none when it may be taken. Judged by real time: a
 * settlement's own clock may run ahead, and a step that is tried again for a day carries the time it was first tried.
 * Nobody closes one of them until the transaction ends.
 *
 * @throws whatever the database throws
 */
export async function closedGates(
  deps: Pick<ActivityDeps, 'runtime' | 'now'>,
  tx: Tx,
  settlement: Settlement,
): Promise<readonly ClosedGate[]> {
  const environment = environmentName(deps.runtime);
  if (settlement.environment !== environment) return forbiddingGates(allClosed('other_environment'), deps.runtime);
  await holdGates(tx, environment, settlement.corridor);
  const evidence = await listGateEvidence(tx, environment, settlement.corridor);
  return forbiddingGates(
    evaluateGates(evidence, { environment, corridors: [settlement.corridor] }, deps.now()),
    deps.runtime,
  );
}

type AnyActivity = (input: never) => Promise<unknown>;

/** Makes activities that play a provider refuse in a remote runtime, whoever asks for them. */
export function inLocalSandboxOnly<Group extends Record<string, AnyActivity>>(
  runtime: RuntimeEnvironment,
  group: Group,
): Group {
  if (!isRemote(runtime)) return group;
  const refuse: AnyActivity = async () => {
    throw new DomainError('local_sandbox_only');
  };
  return Object.fromEntries(Object.keys(group).map((name) => [name, refuse])) as Group;
}
