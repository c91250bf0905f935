/** The states of a capability (contract §14). Nothing here may be `live` or `maintenance`. */
export const CAPABILITY_STATES = ['live', 'local sandbox', 'gated', 'maintenance', 'unavailable'] as const;
export type CapabilityState = (typeof CAPABILITY_STATES)[number];
