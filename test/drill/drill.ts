/** The drills, in the order in which they run. */
import { INCIDENTS } from './incident.ts';
import { OUTAGES } from './outage.ts';
import type { Drill } from './scene.ts';

export const DRILLS: readonly Drill[] = [...OUTAGES, ...INCIDENTS];
/** The name under which the causes and remedies of an operator are played. */
export const OPERATOR_NAME = 'operator';
/** The name under which the situations run. */
export const SITUATIONS_NAME = 'situations';
