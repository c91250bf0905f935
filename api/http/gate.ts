/** The launch gates as the API shows them (contract §14). If they cannot be read, every gate counts as closed. */
import { judgeGates } from '../../db/queries/gate.ts';
import type { CorridorId } from '../../domain/corridor.ts';
import { allClosed, type ClosedGate, forbiddingGates, type GateVerdict } from '../../domain/gate.ts';
import type { ApiDeps } from '../deps.ts';

type Log = { error(fields: object, message: string): void };

/**
 * The present state of each gate; never throws.
 *
 * @param corridor undefined if the request names none: then a gate must be open in every corridor
 */
export async function readGates(deps: ApiDeps, log: Log, corridor?: CorridorId): Promise<readonly GateVerdict[]> {
  try {
    return await judgeGates(deps.db, { runtime: deps.runtime, corridor, now: deps.now() });
  } catch (error) {
    log.error({ err: error }, 'the launch gates could not be read; they count as closed');
    return allClosed('unreadable');
  }
}

/** The gates that forbid an operation that moves value. In a remote runtime there is always at least one. */
export async function closedGates(deps: ApiDeps, log: Log, corridor?: CorridorId): Promise<readonly ClosedGate[]> {
  return forbiddingGates(await readGates(deps, log, corridor), deps.runtime);
}
