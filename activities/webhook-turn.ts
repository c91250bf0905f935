/**
 * Runs the transactions of one subscription one after another within this process. They all wait for the same row lock.
 * When they wait here instead, a busy subscription holds only one of the process's database connections.
 */
export type Turns = <T>(webhookId: string, run: () => Promise<T>) => Promise<T>;

export function createTurns(): Turns {
  const last = new Map<string, Promise<unknown>>();
  return async (webhookId, run) => {
    const turn = (last.get(webhookId) ?? Promise.resolve()).then(run, run);
    last.set(webhookId, turn);
    try {
      return await turn;
    } finally {
      if (last.get(webhookId) === turn) last.delete(webhookId);
    }
  };
}
