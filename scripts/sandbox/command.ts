/** One command of `npm run sandbox`. */
export type SandboxCommand = {
  /** After `npm run sandbox --`. */
  readonly usage: string;
  /** @returns the exit code: 0 when it was done */
  run(args: readonly string[]): Promise<number>;
};
