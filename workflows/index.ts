/** The workflow types that exist, by their permanent names. */
export { sandboxCollection } from './sandbox/collection.ts';
export { settlement } from './settlement.ts';
