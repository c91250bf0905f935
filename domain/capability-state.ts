/**
 * Two independent facts about a capability: whether value may move through it (its state), and how much of it is
 * written (its implementation state). Written code does not mean that value may move (contract §5, §14).
 */

/** Nothing in this service may be `live` or `maintenance`. */
export const CAPABILITY_STATES = ['live', 'local sandbox', 'gated', 'maintenance', 'unavailable'] as const;
export type CapabilityState = (typeof CAPABILITY_STATES)[number];

export const IMPLEMENTATION_STATES = ['implemented', 'partial', 'not_implemented'] as const;
export type ImplementationState = (typeof IMPLEMENTATION_STATES)[number];
