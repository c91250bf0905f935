/**
 * Reads the launch gates before a step that moves value, in the transaction of that step (contract §14). In the
 * local sandbox the simulation's gates are open; everywhere else nothing proves one open.
 */
import type { Tx } from '../db/client.ts';
import { CLOSED_GATES, type ClosedGate } from '../domain/gate.ts';
import { isRemote } from '../domain/runtime.ts';
import type { Settlement } from '../domain/settlement.ts';
import type { ActivityDeps } from './deps.ts';

/** The gates that forbid this settlement's next value step; none when it may be taken. */
export async function closedGates(deps: ActivityDeps, _tx: Tx, _settlement: Settlement): Promise<readonly ClosedGate[]> {
  return isRemote(deps.runtime) ? CLOSED_GATES : [];
}
