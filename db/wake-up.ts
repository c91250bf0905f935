/** Ends the wait of a loop when something happens. */
export type WakeUp = {
  wake(): void;
  /**
   * Resolves at the next `wake`, or after the given milliseconds. A `wake` since the last wait counts: it is not
   * missed.
   */
  wait(timeoutMs: number): Promise<void>;
};

export function createWakeUp(): WakeUp {
  let isWoken = false;
  let endWait = (): void => undefined;
  return {
    wake: () => {
      isWoken = true;
      endWait();
    },
    wait: async (timeoutMs) => {
      if (!isWoken) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, timeoutMs);
          endWait = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      isWoken = false;
    },
  };
}
