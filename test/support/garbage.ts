import v8 from 'node:v8';
import vm from 'node:vm';

v8.setFlagsFromString('--expose-gc');

/** Collects all memory that nothing refers to, now. */
export const collectGarbage: () => void = vm.runInNewContext('gc');
