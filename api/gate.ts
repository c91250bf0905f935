/** The launch gates at the edge (contract §14). A store that cannot be read closes every gate. */
import type { Tx } from '../db/client.ts';
import { listGateEvidence } from '../db/queries/gate.ts';
import { CORRIDOR_IDS, type CorridorId } from '../domain/corridor.ts';
import { DomainError } from '../domain/error.ts';
import { allClosed, type ClosedGate, evaluateGates, forbiddingGates, type GateVerdict } from '../domain/gate.ts';
import { environmentName } from '../domain/runtime.ts';
import type { ApiDeps } from './deps.ts';

/**
 * How the gates stand here and now; never throws.
 *
 * @param corridor undefined where the request names none: a gate must then be open in all of them
 */
export async function judgeGates(
  deps: ApiDeps,
  log: { error(fields: object, message: string): void },
  corridor?: CorridorId,
): Promise<readonly GateVerdict[]> {
  const environment = environmentName(deps.runtime);
  try {
    const evidence = await listGateEvidence(deps.db, environment, corridor);
    return evaluateGates(
      evidence,
      { environment, corridors: corridor === undefined ? CORRIDOR_IDS : [corridor] },
      deps.now(),
    );
  } catch (error) {
    log.error({ err: error }, 'the launch gates could not be read; they count as closed');
    return allClosed('unreadable');
  }
}

/** The gates that forbid a value operation here. In a remote runtime there always are some. */
export async function closedGates(
  deps: ApiDeps,
  log: { error(fields: object, message: string): void },
  corridor?: CorridorId,
): Promise<readonly ClosedGate[]> {
  return forbiddingGates(await judgeGates(deps, log, corridor), deps.runtime);
}

/**
 * Refuses a value command in the transaction that would accept it. A replay is answered before, as it was the first
 * time.
 *
 * @throws DomainError `launch_gates_closed`; whatever the database throws, and then nothing is accepted either
 */
export async function requireOpenGates(deps: ApiDeps, tx: Tx, corridor: CorridorId): Promise<void> {
  const environment = environmentName(deps.runtime);
  const evidence = await listGateEvidence(tx, environment, corridor);
  const gates = forbiddingGates(
    evaluateGates(evidence, { environment, corridors: [corridor] }, deps.now()),
    deps.runtime,
  );
  if (gates.length > 0) throw new DomainError('launch_gates_closed', { gates });
}

/** The corridor that a body names, where it names one. */
export function corridorOf(body: unknown): CorridorId | undefined {
  const named = typeof body === 'object' && body !== null && 'corridor' in body ? body.corridor : undefined;
  return CORRIDOR_IDS.find((id) => id === named);
}
