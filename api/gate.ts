/** The launch gates as HTTP answers them (contract §14). When they cannot be read, every gate counts as closed. */
import { judgeGates } from '../db/queries/gate.ts';
import { CORRIDOR_IDS, type CorridorId } from '../domain/corridor.ts';
import { allClosed, type ClosedGate, forbiddingGates, type GateVerdict } from '../domain/gate.ts';
import type { ApiDeps } from './deps.ts';

type Log = { error(fields: object, message: string): void };

/**
 * Whether each gate is open, here and now; never throws.
 *
 * @param corridor undefined where the request names none: a gate must then be open in all of them
 */
export async function readGates(deps: ApiDeps, log: Log, corridor?: CorridorId): Promise<readonly GateVerdict[]> {
  try {
    return await judgeGates(deps.db, { runtime: deps.runtime, corridor, now: deps.now() });
  } catch (error) {
    log.error({ err: error }, 'the launch gates could not be read; they count as closed');
    return allClosed('unreadable');
  }
}

/** The gates that forbid an operation that moves value. In a remote runtime there always are some. */
export async function closedGates(deps: ApiDeps, log: Log, corridor?: CorridorId): Promise<readonly ClosedGate[]> {
  return forbiddingGates(await readGates(deps, log, corridor), deps.runtime);
}

/** The corridor that a body names; undefined where it names none. */
export function corridorOf(body: unknown): CorridorId | undefined {
  const named = typeof body === 'object' && body !== null && 'corridor' in body ? body.corridor : undefined;
  return CORRIDOR_IDS.find((id) => id === named);
}
