/** The faults that the suite found in the service of 2026-11-22, before they were mended, for docs/torture.md. */

export type KnownFault = {
  readonly fault: string;
  readonly seed: number;
  /** What the run of the seed said about the code of before. */
  readonly said: string;
};

export const KNOWN_FAULTS: readonly KnownFault[] = [];

export const UNREACHED_FAULTS = '';
